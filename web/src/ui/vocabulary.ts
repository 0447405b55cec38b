// The words of the formats other than berth's own, which has a schema: what the parsers in src/dialects/ take, and
// tests/completion.test.tsx compares with them.

/** Keys by the path to where they stand, each with the values it may have; none: any. */
export type Vocabulary = Record<string, Record<string, readonly string[]>>;

const ANY: readonly string[] = [];
const FLAG = ['true', 'false'];

/** Placeholders that are filled in when a job starts. */
export const AT_START = [
  'gpu_list',
  'gpu_count',
  'gpu_uuids',
  'job_id',
  'batch_id',
  'uni_id',
  'work_dir',
  'log_path',
  'port',
];

export const FEDWHAT: Vocabulary = {
  '': { jobs: ANY, command: ANY, seed_in: ['command', 'config'], name: ANY },
  jobs: { name: ANY, config: ANY, algorithm: ANY, log_path: ANY, extra_args: ANY },
};
/** Placeholders of its command. */
export const FEDWHAT_WORDS = ['config', 'algorithm', 'name', 'extra_args'];

/** The configuration of command files, which may be submitted in their place. */
export const COMMAND_CONFIG: Vocabulary = {
  '': {
    check_time: ANY,
    maximize_resource_utilization: FLAG,
    memory_save_mode: FLAG,
    compete_gpus: ANY,
    use_all_gpus: FLAG,
    gpu_left: ANY,
    min_gpu: ANY,
    max_gpu: ANY,
    retry_config: ANY,
    work_dir: ANY,
    gpu_command_file: ANY,
    gpus_command_file: ANY,
  },
  retry_config: { max_retry_before_backoff: ANY, backoff_duration: ANY },
};

export const GPU_MANAGER: Vocabulary = {
  '': {
    monitor_interval: ANY,
    max_gpus_per_task: ANY,
    auto_scale: FLAG,
    auto_manage: FLAG,
    program_template: ANY,
    notification: ANY,
    scaling: ANY,
    logging: ANY,
    min_reserved_gpus: ANY,
    max_reserved_gpus: ANY,
    max_total_gpus: ANY,
    max_manual_gpus: ANY,
    job_prefix: ANY,
    managed_job_prefixes: ANY,
    manual_allocation_enabled: FLAG,
    quick_allocation_timeout: ANY,
    aggressive_mode: FLAG,
    parallel_submissions: ANY,
    queue_waiting: FLAG,
  },
  program_template: { command: ANY, args: ANY, env_vars: ANY },
  scaling: {
    enabled: FLAG,
    min_gpus: ANY,
    max_gpus: ANY,
    scale_up_threshold: ANY,
    scale_down_threshold: ANY,
  },
  notification: { enabled: FLAG, email: ANY, gpu_available_threshold: ANY },
  logging: { file: ANY },
};

/** Options of the lines that scripts begin with; those with = take a value. */
export const DIRECTIVES: Record<string, readonly string[]> = {
  '#BERTH': [
    '--after=',
    '--after-any=',
    '--after-failed=',
    '--array=',
    '--at=',
    '--cpus=',
    '--cwd=',
    '--env=',
    '--gpu-memory=',
    '--gpus=',
    '--grace=',
    '--in=',
    '--linger',
    '--log=',
    '--memory=',
    '--name=',
    '--priority=',
    '--queue=',
    '--requeue',
    '--resource=',
    '--retries=',
    '--rule=',
    '--signal=',
    '--time=',
  ],
  '#SBATCH': [
    '--array=',
    '--begin=',
    '--chdir=',
    '--cpus-per-gpu=',
    '--cpus-per-task=',
    '--dependency=',
    '--error=',
    '--export=',
    '--gpus=',
    '--gpus-per-node=',
    '--gpus-per-task=',
    '--gres=',
    '--job-name=',
    '--mem=',
    '--mem-per-cpu=',
    '--mem-per-gpu=',
    '--nodes=',
    '--ntasks=',
    '--ntasks-per-node=',
    '--output=',
    '--requeue',
    '--signal=',
    '--time=',
  ],
};
