"""Work in other processes: in order, forked, or in a child that may crash."""
