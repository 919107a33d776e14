"""Event files of TensorBoard and MindSpore: records with checksums around protobuf messages."""
