"""What the readers of experiment trackers share: logged values, and databases in use."""
