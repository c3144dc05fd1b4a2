"""Many ranks side by side: who waits for whom, on one clock, found from a few facts of each.

A capture is read where it is and leaves `tables.RankTables`; everything else is made from these.
"""
