"""TensorBoard: event files of torch, TensorFlow and tensorboardX."""
