"""Faulty and healthy trainings with MindSpore, and whether the advice on them is right."""
