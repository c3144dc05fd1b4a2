"""Many ranks side by side: who waits for whom, on one clock, found from a few facts about each.

A capture is read where it is and reduced to `tables.RankTables`; everything else is computed from
these.
"""
