"""Ascend: what torch_npu and msprof leave behind."""
