"""Training scripts with a known fault, their repaired twins, and healthy ones: is the advice right?

python -m benchmarks.zoo [--only NAME] [--repeat N] [--json]
"""
