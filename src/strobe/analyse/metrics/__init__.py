"""Training metrics as charts and as a catalogue over runs."""
