"""Parts of tools/gpu_day. It runs where there is Python and nothing else."""
