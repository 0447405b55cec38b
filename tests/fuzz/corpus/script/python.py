#!/usr/bin/env python3
#SBATCH -G 2 -n 3 -N 1-2
print("{job_id}")
