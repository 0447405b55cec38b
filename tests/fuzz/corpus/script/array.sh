#!/bin/bash
#SBATCH --job-name=train --array=0-3%2
#SBATCH --gres=gpu:a100:1 --time=1-02:03:04 --mem=4G -c 2
#SBATCH --output=logs/%x-%A_%3a.out --error logs/%j.err
#SBATCH --dependency=afterok:1:2 --export=ALL,A=b --signal=B:USR1@120
#SBATCH --partition=gpu

srun python train.py --seed "$SLURM_ARRAY_TASK_ID" {port} ${port}
