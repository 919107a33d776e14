"""One model and one loop, written for three frameworks."""
