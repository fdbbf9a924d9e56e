"""The arena: one comparison of feature selectors, on the same splits, by the same judges.

Read in this order: ``tables`` (what is selected from), ``selectors`` (who selects), ``processes``
(a process for each selection, with limits), ``judges`` (how columns are scored), ``runs`` (a row of
data for each table, selector and split), ``ratings`` and ``verdict`` (who is better, and what is
certain), ``page`` (what people read).
"""
