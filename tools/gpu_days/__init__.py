"""What tools/gpu_day is made of. It runs where there is Python and nothing else."""
