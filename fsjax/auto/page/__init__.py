"""How a selection is shown: its summary, pictures, and the page report.html."""
