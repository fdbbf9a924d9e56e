"""``make chaos``: runs that are killed, damaged, started twice, and put on failing disks."""
