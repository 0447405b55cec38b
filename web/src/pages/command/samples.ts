// A beginning in each dialect.

import type { Mode } from '../../api/client';
import type { Dialect } from '../../api/types';

export const SAMPLES: Record<Dialect, { name: string; text: string }> = {
  native: {
    name: 'jobs.yaml',
    text: `version: 1
name: sweep
jobs:
  - name: train
    matrix:
      lr: [0.1, 0.01]
      seed: [1, 2]
    run: python train.py --lr {lr} --seed {seed}
    gpu_memory: 8GiB
    retries: 1
`,
  },
  commands: {
    name: 'command_gpu.txt',
    text: `# queue
1
python train.py --lr 0.1
# GPU memory in GiB
8

2
python train.py --lr 0.01
8
`,
  },
  fedwhat: {
    name: 'experiments.yaml',
    text: `jobs:
  - name: "base"
    config: "configs/base.yaml"
    algorithm: "FedAvg"
    log_path: "logs/base.log"
    extra_args: {seed: 42}
`,
  },
  script: {
    name: 'job.sh',
    text: `#!/bin/bash
#SBATCH --job-name=train
#SBATCH --gpus=1
#SBATCH --time=02:00:00

python train.py
`,
  },
  gpu_manager: {
    name: 'gpu_config.json',
    text: `{
  "monitor_interval": 30,
  "max_gpus_per_task": 2,
  "program_template": {
    "command": "python",
    "args": ["train.py"]
  }
}
`,
  },
};

/** What an empty command file may begin with: queue, command, cards where there may be several, GiB. */
export const EXAMPLES: Record<Mode, string> = {
  single: `# queue
1
python train.py --lr 0.1
# GiB
8

# the same queue: after the one above
1
python train.py --lr 0.01
8

# another queue: beside it
2
python eval.py
4
`,
  multi: `# queue
1
torchrun --nproc_per_node=2 train.py
# GPUs
2
# GiB on each
16
`,
};
