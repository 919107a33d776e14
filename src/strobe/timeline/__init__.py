"""The timeline at any zoom: an index of a run's events, and the questions a viewer asks it."""
