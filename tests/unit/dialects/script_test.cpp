#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "dialects/dialect.hpp"

namespace berth {
namespace {

Parsed parse(std::string_view text, DialectOptions options = {}) {
  Source source;
  source.text = text;
  source.file_name = "dir/job.sh";
  source.base_dir = "/files/dir";
  source.here = "/here";
  source.user = "ann";
  source.host = "node1";
  source.has_program = [](const std::string&) { return false; };
  return parse_file(source, options);
}

JobFile accepted(std::string_view text, DialectOptions options = {}) {
  auto file = parse(text, std::move(options));
  EXPECT_TRUE(file) << (file ? "" : file.error().front().message);
  return file ? std::move(*file) : JobFile{};
}

std::string complaints(std::string_view text) {
  const auto file = parse(text);
  std::string out;
  if (!file) {
    for (const auto& error : file.error()) {
      out += fmt::format("{}:{}: {}\n", error.at.line, error.at.column, error.message);
    }
  }
  return out;
}

std::string variable(const JobSpec& job, std::string_view name) {
  for (const std::string_view entry : job.payload.extra_env) {
    if (entry.starts_with(name) && entry.substr(name.size()).starts_with('=')) {
      return std::string(entry.substr(name.size() + 1));
    }
  }
  return "(none)";
}

TEST(Script, IsRecognised) {
  EXPECT_EQ(recognise("#!/bin/bash\necho\n", "x"), Dialect::script);
  EXPECT_EQ(recognise("# about\n#SBATCH -G 1\npython x\n", "x"), Dialect::script);
  EXPECT_EQ(recognise("#!/usr/bin/env -S berth run\nversion: 1\n", "x.yaml"), Dialect::native);
  EXPECT_EQ(recognise("# a job file\nversion: 1\n", "x.yaml"), Dialect::native);
}

TEST(Script, AnOrdinarySbatchScript) {
  const std::string text =
      "#!/bin/bash -l\n"
      "#SBATCH --job-name=train --gres=gpu:2\n"
      "#SBATCH -t 1-00:30:00   # a day\n"
      "#SBATCH --output=logs/%x-%j.out\n"
      "#SBATCH --cpus-per-task=4 --ntasks 2\n"
      "#SBATCH --mem=16G\n"
      "#SBATCH --signal=B:USR1@120\n"
      "#SBATCH --chdir \"work dir\"\n"
      "\n"
      "python train.py\n";
  const auto file = accepted(text);
  ASSERT_EQ(file.jobs.size(), 1U);
  const JobSpec& job = file.jobs[0];
  EXPECT_EQ(file.name, "train");
  EXPECT_EQ(file.traits.dialect, "script");
  EXPECT_EQ(job.name, "train");
  EXPECT_EQ(job.request.gpus, (GpuCount{2, 2}));
  EXPECT_EQ(job.request.cpus, 8U);
  EXPECT_EQ(job.request.memory, 16 * kGiB);
  EXPECT_EQ(job.payload.time_limit, Millis((24 * 60 + 30) * 60'000));
  EXPECT_EQ(job.payload.cwd, "/here/work dir");
  EXPECT_EQ(job.payload.log, "/here/work dir/logs/train-{job_id}.out");
  EXPECT_EQ(format_warning(job.payload.warning), "USR1@2m");
  EXPECT_EQ(job.payload.commands,
            (std::vector<Command>{{false, {"/bin/bash", "-l", "-c", text, "/files/dir/job.sh"}}}));
  EXPECT_EQ(variable(job, "SLURM_JOB_ID"), "{job_id}");
  EXPECT_EQ(variable(job, "SLURM_JOB_NAME"), "train");
  EXPECT_EQ(variable(job, "SLURM_SUBMIT_DIR"), "/here");
  EXPECT_EQ(variable(job, "SLURM_JOB_GPUS"), "{gpu_list}");
  EXPECT_EQ(variable(job, "SLURM_STEP_GPUS"), "{gpu_list}");
  EXPECT_EQ(variable(job, "CUDA_VISIBLE_DEVICES"), "{gpu_list}");
  EXPECT_EQ(variable(job, "SLURM_GPUS_ON_NODE"), "{gpu_count}");
  EXPECT_EQ(variable(job, "SLURM_NTASKS"), "2");
  EXPECT_EQ(variable(job, "SLURM_NTASKS_PER_NODE"), "(none)");
  EXPECT_EQ(variable(job, "SLURM_TASKS_PER_NODE"), "2");
  EXPECT_EQ(variable(job, "SLURM_CPUS_ON_NODE"), "8");
  EXPECT_EQ(variable(job, "SLURM_JOB_CPUS_PER_NODE"), "8");
  EXPECT_EQ(variable(job, "SLURM_MEM_PER_NODE"), "16384");
  EXPECT_EQ(variable(job, "SLURM_GPUS_PER_NODE"), "{gpu_count}");
  EXPECT_EQ(variable(job, "SLURM_CPUS_PER_TASK"), "4");
  EXPECT_EQ(variable(job, "SLURM_JOB_NODELIST"), "node1");
  EXPECT_EQ(variable(job, "SLURM_ARRAY_TASK_ID"), "(none)");
}

TEST(Script, AWarningThatIsLongerThanTheTimeComesHalfway) {
  const auto file = accepted("#!/bin/sh\n#SBATCH --signal=USR1@120\n#SBATCH -t 1\nls\n");
  EXPECT_EQ(format_warning(file.jobs.at(0).payload.warning), "USR1@30s");
  EXPECT_EQ(file.warnings, (std::vector<std::string>{
                               "dir/job.sh:2:9: --signal: 2m is not less than --time, 1m; the "
                               "signal comes 30s before the end"}));
  EXPECT_EQ(accepted("#!/bin/sh\n#SBATCH --signal=USR1@59 -t 1\nls\n").warnings.size(), 0U);
  EXPECT_EQ(complaints("#!/bin/sh\n#BERTH --signal USR1@120 --time 1m\nls\n"),
            "2:8: 'signal' would come 2m before the end, and 'time' is 1m; it must be less\n");
}

TEST(Script, TasksAreToldOnlyWhereTheyWereAskedFor) {
  const auto plain = accepted("#!/bin/sh\n#SBATCH --gres=gpu:2\nls\n").jobs.at(0);
  EXPECT_EQ(variable(plain, "SLURM_NTASKS"), "(none)");
  EXPECT_EQ(variable(plain, "SLURM_NPROCS"), "(none)");
  EXPECT_EQ(variable(plain, "SLURM_TASKS_PER_NODE"), "1");
  EXPECT_EQ(variable(plain, "SLURM_CPUS_ON_NODE"), "1");
  EXPECT_EQ(variable(plain, "SLURM_MEM_PER_NODE"), "(none)");
  const auto asked = accepted("#!/bin/sh\n#SBATCH --ntasks-per-node=2\nls\n").jobs.at(0);
  EXPECT_EQ(variable(asked, "SLURM_NTASKS"), "2");
  EXPECT_EQ(variable(asked, "SLURM_NTASKS_PER_NODE"), "2");
}

TEST(Script, WithoutGpusInSbatchLinesItGetsNone) {
  const auto slurm = accepted("#!/bin/sh\n#SBATCH -t 5\nls\n");
  EXPECT_EQ(slurm.jobs[0].request.gpus, (GpuCount{0, 0}));
  EXPECT_EQ(slurm.jobs[0].payload.log, "/here/slurm-{job_id}.out");
  EXPECT_EQ(variable(slurm.jobs[0], "CUDA_VISIBLE_DEVICES"), "(none)");
  EXPECT_EQ(slurm.jobs[0].name, "job.sh");
  const auto own = accepted("#!/bin/sh\n#BERTH --time 5m\nls\n");
  EXPECT_EQ(own.jobs[0].request.gpus, (GpuCount{1, 1}));
  EXPECT_EQ(own.jobs[0].payload.log, "") << "berth keeps the log";
  EXPECT_EQ(own.jobs[0].name, "job");
  EXPECT_TRUE(own.jobs[0].payload.extra_env.empty());
}

TEST(Script, WaysToAskForGpus) {
  const auto gpus = [](std::string_view options) {
    return accepted(fmt::format("#!/bin/sh\n#SBATCH {}\nls\n", options))
        .jobs.at(0)
        .request.gpus.max;
  };
  EXPECT_EQ(gpus("--gres=gpu"), 1U);
  EXPECT_EQ(gpus("--gres=gpu:a100"), 1U);
  EXPECT_EQ(gpus("--gres=gpu:a100:3(S:0-1)"), 3U);
  EXPECT_EQ(gpus("--gres gpu:2,shard:4"), 2U);
  EXPECT_EQ(gpus("--gres=gpu:a100:1,gpu:v100:2"), 3U);
  EXPECT_EQ(gpus("-G4"), 4U);
  EXPECT_EQ(gpus("--gpus=h100:2"), 2U);
  EXPECT_EQ(gpus("--gpus-per-node=2"), 2U);
  EXPECT_EQ(gpus("--gpus-per-task 2 -n 3"), 6U);
}

TEST(Script, ArraysBecomeBatches) {
  const auto file = accepted(
      "#!/bin/bash\n#SBATCH -a 1-9:4%2 -J sweep -o o-%A-%3a.txt\npython t.py "
      "$SLURM_ARRAY_TASK_ID\n");
  ASSERT_EQ(file.jobs.size(), 3U);
  EXPECT_EQ(file.max_concurrent, 2U);
  const JobSpec& last = file.jobs[2];
  EXPECT_EQ(last.name, "sweep-9");
  EXPECT_EQ(last.payload.log, "/here/o-{first_id}-009.txt");
  EXPECT_EQ(last.payload.params, (std::map<std::string, std::string>{{"task", "9"}}));
  EXPECT_EQ(variable(last, "SLURM_JOB_NAME"), "sweep");
  EXPECT_EQ(variable(last, "SLURM_ARRAY_JOB_ID"), "{first_id}");
  EXPECT_EQ(variable(last, "SLURM_ARRAY_TASK_ID"), "9");
  EXPECT_EQ(variable(last, "SLURM_ARRAY_TASK_COUNT"), "3");
  EXPECT_EQ(variable(last, "SLURM_ARRAY_TASK_MIN"), "1");
  EXPECT_EQ(variable(last, "SLURM_ARRAY_TASK_MAX"), "9");
  EXPECT_EQ(variable(last, "SLURM_ARRAY_TASK_STEP"), "4");
  EXPECT_EQ(accepted("#!/bin/sh\n#SBATCH -a 3\nls\n").jobs[0].payload.log,
            "/here/slurm-{first_id}_3.out");
  EXPECT_EQ(
      variable(accepted("#!/bin/sh\n#BERTH --array 3-4\nls\n").jobs[1], "BERTH_ARRAY_TASK_ID"),
      "4");
}

TEST(Script, AnArrayThatWouldFillTheMemoryIsRefused) {
  EXPECT_NE(complaints("#!/bin/bash\n#SBATCH --array=0-999999\ntrue\n").find("1000000 tasks that "),
            std::string::npos);
  EXPECT_EQ(accepted("#!/bin/bash\n#SBATCH --array=0-9999\ntrue\n").jobs.size(), 10'000U);
}

TEST(Script, AWorkDirectoryThatIsNotThereIsTold) {
  Source source;
  source.text = "#!/bin/bash\n#SBATCH --chdir=/no/where\ntrue\n";
  source.file_name = "job.sh";
  source.base_dir = "/";
  source.lacks_directory = [](const std::filesystem::path& path) { return path == "/no/where"; };
  const auto file = parse_file(source, {});
  ASSERT_TRUE(file);
  ASSERT_EQ(file->warnings.size(), 1U);
  EXPECT_EQ(file->warnings[0],
            "job.sh:2:9: cwd '/no/where' is no directory; make it before the job starts");
}

TEST(Script, BerthLinesAreTheOptionsOfAdd) {
  const auto file = accepted(
      "#!/bin/bash\n"
      "#BERTH --gpus 1..2 --gpu-memory 20GiB --time 2h --retries 3\n"
      "#BERTH --queue night --priority 1 --env A=b --env 'C=d e' --rule gpu_left=1\n"
      "#BERTH --after 3,5-6 --log out.log --resource licence=2 --requeue --linger\n"
      "ls\n");
  const JobSpec& job = file.jobs.at(0);
  EXPECT_EQ(job.request.gpus, (GpuCount{1, 2}));
  EXPECT_EQ(job.request.gpu_memory, 20 * kGiB);
  EXPECT_EQ(job.payload.time_limit, Millis(7'200'000));
  EXPECT_EQ(job.retries, 3U);
  EXPECT_EQ(job.queue, "night");
  EXPECT_EQ(job.priority, 1);
  EXPECT_EQ(job.payload.extra_env, (Environment{"A=b", "C=d e"}));
  EXPECT_EQ(job.after, (std::vector<JobId>{JobId{3}, JobId{5}, JobId{6}}));
  EXPECT_EQ(job.payload.log, "/here/out.log");
  EXPECT_EQ(job.request.resources.at("licence"), 2U);
  EXPECT_EQ(job.request.rules.at("gpu_left"), "1");
  EXPECT_EQ(job.request.rules.at("retry_config.requeue_on_timeout"), "true");
  EXPECT_TRUE(job.payload.linger);
}

TEST(Script, BerthLinesGoBeforeSbatchLines) {
  const auto file = accepted("#!/bin/bash\n#BERTH --gpus 3\n#SBATCH -G 1 -t 5\nls\n");
  EXPECT_EQ(file.jobs.at(0).request.gpus, (GpuCount{3, 3}));
}

TEST(Script, DependenciesAndEnvironment) {
  const auto file =
      accepted("#!/bin/bash\n#SBATCH -d afterany:3:4 --export=FOO=1,BAR={port},HTTP_PROXY\nls\n");
  const JobSpec& job = file.jobs.at(0);
  EXPECT_EQ(job.after_kind, After::any);
  EXPECT_EQ(job.after, (std::vector<JobId>{JobId{3}, JobId{4}}));
  EXPECT_EQ(variable(job, "FOO"), "1");
  EXPECT_EQ(variable(job, "BAR"), "{{port}}");
  ASSERT_NE(job.payload.environment, nullptr);
  EXPECT_EQ(*job.payload.environment, Environment{"HTTP_PROXY"});
  EXPECT_EQ(accepted("#!/bin/sh\n#SBATCH --export=ALL,A=1\nls\n").jobs[0].payload.environment,
            nullptr);
  EXPECT_TRUE(
      accepted("#!/bin/sh\n#SBATCH --export=NONE\nls\n").jobs[0].payload.environment->empty());
}

TEST(Script, AnIdMayMeanAnArray) {
  const auto file = accepted("#!/bin/bash\n#SBATCH -d afterok:3:4_7\nls\n");
  EXPECT_EQ(file.jobs.at(0).after, std::vector<JobId>{JobId{3}});
  EXPECT_EQ(file.after_arrays, (std::vector<AfterArray>{{JobId{3}, {}}, {JobId{4}, 7U}}));
  EXPECT_EQ(complaints("#!/bin/bash\n#SBATCH -d afterok:3_x\nls\n"),
            "2:9: --dependency: 'afterok:3_x' is not a dependency: '3_x' is not the id of a job, "
            "such as 7, or of a task of an array, such as 7_3\n");
}

TEST(Script, BracesOfTheProgramAreItsOwn) {
  const auto file = accepted("#!/bin/bash\n#BERTH --gpus 0\necho ${port} {job_id} {{port}} {x}\n");
  EXPECT_EQ(file.jobs.at(0).payload.commands.at(0).argv.at(2),
            "#!/bin/bash\n#BERTH --gpus 0\necho ${port} {{job_id}} {{{port}}} {x}\n");
}

TEST(Script, AnErrorFileOfItsOwn) {
  const auto file = accepted("#!/bin/bash\n#SBATCH -o o.txt -e e'%j.txt\nls\n");
  EXPECT_TRUE(file.jobs.at(0).payload.commands.at(0).argv.at(2).starts_with(
      "exec 2>>'/here/e{job_id}.txt' || exit 1; #!/bin/bash\n"));
  const auto same = accepted("#!/bin/bash\n#SBATCH -o o.txt -e o.txt\nls\n");
  EXPECT_TRUE(same.jobs.at(0).payload.commands.at(0).argv.at(2).starts_with("#!/bin/bash\n"));
}

TEST(Script, PythonAndArguments) {
  DialectOptions options;
  options.arguments = {"--lr", "0.1"};
  const auto file = accepted("#!/usr/bin/env python3\n#SBATCH -G 1\nprint(1)\n", options);
  const auto& argv = file.jobs.at(0).payload.commands.at(0).argv;
  ASSERT_EQ(argv.size(), 7U);
  EXPECT_EQ(argv[0], "python3");
  EXPECT_EQ(argv[3], "/files/dir/job.sh");
  EXPECT_EQ(argv[4], "#!/usr/bin/env python3\n#SBATCH -G 1\nprint(1)\n");
  EXPECT_EQ(argv[6], "0.1");
  EXPECT_FALSE(parse("version: 1\njobs: [{run: x}]\n", options)) << "arguments are for scripts";
}

TEST(Script, WhatIsNotReadIsNamed) {
  const auto file = accepted(
      "#!/bin/bash\n"
      "#SBATCH --partition=gpu --mail-type END\n"
      "#SBATCH --gpuss=2 -N 2\n"
      "#SBATCH --dependency=singleton\n"
      "srun python t.py\n"
      "#SBATCH --time=5\n");
  const std::vector<std::string> expected = {
      "dir/job.sh:2:9: '--partition' says nothing to berth and is left out",
      "dir/job.sh:2:25: '--mail-type' says nothing to berth and is left out",
      "dir/job.sh:3:9: '--gpuss' is not known here and is left out; did you mean '--gpus'?",
      "dir/job.sh:3:19: --nodes 2: berth starts the script on this machine alone",
      "dir/job.sh:4:9: the dependency 'singleton' is left out; there are afterok:ID, afterany:ID "
      "and afternotok:ID",
      "dir/job.sh:5:1: this line calls srun, and there is none on PATH: its command is run here, "
      "once for each task, and its other options are left out",
      "dir/job.sh:6:1: this directive stands behind the first command and is not read"};
  EXPECT_EQ(file.warnings, expected);
}

TEST(Script, OptionsThatContradictEachOtherAreNamed) {
  const auto both = accepted("#!/bin/sh\n#SBATCH --gres=gpu:2\n#SBATCH --gpus=1\nls\n");
  EXPECT_EQ(both.jobs.at(0).request.gpus.max, 1U);
  EXPECT_EQ(both.warnings, std::vector<std::string>{
                               "dir/job.sh:3:9: '--gpus=1' and '--gres=gpu:2' ask for different "
                               "numbers of GPUs; the former counts, so the script gets 1"});
  EXPECT_TRUE(accepted("#!/bin/sh\n#SBATCH --gres=gpu:2 -G 2\nls\n").warnings.empty());
  const auto sign = accepted("#!/bin/sh\n#SBATCH -a 1-2 -o %q.txt\nls\n");
  EXPECT_EQ(sign.jobs.at(0).payload.log, "/here/%q.txt");
  EXPECT_EQ(sign.warnings.size(), 1U);
}

TEST(Script, BeginIsADelayedStart) {
  const auto start = [](std::string_view options) {
    return accepted(fmt::format("#!/bin/sh\n{}\nls\n", options)).jobs.at(0).start_at;
  };
  EXPECT_EQ(start("#SBATCH --begin=now+2hours"), Millis(7'200'000));
  EXPECT_EQ(start("#SBATCH -b 2026-05-01T12:30:00Z"), Millis(1'777'638'600'000));
  EXPECT_EQ(start("#SBATCH --begin=noon\n#BERTH --in 5s"), Millis(5'000)) << "#BERTH counts";
}

TEST(Script, ScontrolIsThereForNamesOfMachines) {
  const auto names = accepted(
      "#!/bin/bash\n#SBATCH -G 1\nnodes=( $( scontrol show hostnames $SLURM_JOB_NODELIST ) )\n");
  EXPECT_TRUE(names.warnings.empty());
  EXPECT_TRUE(names.jobs.at(0).payload.commands.at(0).argv.at(2).starts_with("scontrol() ("));
  const auto other = accepted("#!/bin/bash\n#SBATCH -G 1\nscontrol requeue $SLURM_JOB_ID\n");
  EXPECT_EQ(other.warnings,
            std::vector<std::string>{"dir/job.sh:3:1: this line calls scontrol, and there is none "
                                     "on PATH: 'scontrol show hostnames' tells the name of this "
                                     "machine, and everything else fails"});
}

TEST(Script, MistakesHaveTheirPlace) {
  EXPECT_EQ(
      complaints("#!/bin/bash\n#SBATCH --time=soon\n#SBATCH  -a 3-1\nls\n"),
      "2:9: --time: 'soon' is not a time; write minutes, hours:minutes:seconds or "
      "days-hours:minutes:seconds\n"
      "3:10: --array: '3-1' is not a list of tasks; write for example 0-9, 1,3,5 or 0-99%8\n");
  EXPECT_EQ(complaints("#!/bin/bash\n#SBATCH -a 0-9:0\nls\n"),
            "2:9: --array: '0-9:0' is not a list of tasks; write for example 0-9, 1,3,5 or "
            "0-99%8\n");
  EXPECT_EQ(complaints("#!/bin/bash\n#BERTH --gpus many\nls\n"),
            "2:8: 'gpus' must be a number such as 2, a range such as 1..4, or 0 for none, not "
            "'many'\n");
  EXPECT_EQ(complaints("#!/bin/bash\n#SBATCH -d afterok:1,afterany:2\nls\n"),
            "2:9: a job has one kind of dependency: all must succeed, all must end, or all must "
            "fail; let a job without GPUs wait for the others, as in 'berth add --gpus 0 "
            "--after-any 3 true', and follow that one\n");
  EXPECT_EQ(complaints("#!/bin/bash\n#SBATCH --gres=gpu:x:y:z\nls\n"),
            "2:9: --gres: 'gpu:x:y:z' is not a number of GPUs; write gpu:2 or gpu:TYPE:2\n");
  EXPECT_EQ(complaints("#!/bin/bash\n#SBATCH -G 1\n#SBATCH hetjob\n#SBATCH -G 4\nls\n"),
            "3:9: heterogeneous jobs are not run: their parts need machines of their own; write a "
            "script for each part, or one that asks for all of it\n");
  EXPECT_EQ(complaints("#!/bin/bash\n#SBATCH --begin=soon\nls\n"),
            "2:9: --begin: 'soon' is not a time; write 12:30, tomorrow 8:00 or 2026-05-01 12:30\n");
  EXPECT_EQ(complaints("#!/usr/bin/perl\n#SBATCH -G 1\n"),
            "1:1: scripts for '/usr/bin/perl' are not read; for sh, bash and python they are: call "
            "the program from a script for bash\n");
  EXPECT_NE(complaints("#!/bin/bash\r\n#SBATCH -G 1\r\n").find("1:1: this line ends as on Windows"),
            std::string::npos);
  EXPECT_NE(complaints("#!/bin/bash\n" + std::string(131'000, 'x')).find("the kernel takes"),
            std::string::npos);
}

}  // namespace
}  // namespace berth
