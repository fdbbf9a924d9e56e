"""What launchers share: command lines, configurations, folders of runs."""
