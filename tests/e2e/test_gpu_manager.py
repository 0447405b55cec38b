"""gpu_manager_config.json: one program, with as many GPUs as the file allows and are free."""

import json

import pytest

CONFIG = """{
  "monitor_interval": 5,           // seconds
  "max_gpus_per_task": 2,
  "auto_scale": true,
  "program_template": {            /* what runs */
    "command": "echo got",
    "args": ["$BERTH_GPU_COUNT", "it's"],
    "env_vars": {"LEVEL": "three",},
  },
  "job_prefix": "NDFS_",
  "scaling": {"enabled": true, "min_gpus": 1, "max_gpus": 8}
}
"""


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "gpu_manager_config.json"
    path.write_text(CONFIG)
    return path


@pytest.mark.smoke
def test_the_program_gets_what_is_free_up_to_the_smaller_bound(make_instance, config):
    berth = make_instance(gpus="sim:4x24GiB")
    berth.start()
    done = berth.cli("run", "--name", "train", config, check=0)
    assert "scaling.max_gpus is 8, and max_gpus_per_task is 2: the smaller is taken, 2" in done.stderr
    assert "auto_scale: the program gets as many GPUs as are free when it starts, 1 to 2" in done.stderr
    [job] = berth.jobs()
    assert job["name"] == "NDFS_train" and len(job["gpu_indices"]) == 2
    assert "got $BERTH_GPU_COUNT it's" in berth.cli("log", job["id"], check=0).stdout


def test_what_is_not_there_is_refused_and_nothing_is_submitted(berth, config):
    config.write_text(CONFIG.replace('"job_prefix"', '"auto_manage": true,\n  "job_prefix"'))
    done = berth.cli("run", config)
    assert done.returncode != 0 and "nothing was submitted" in done.stderr
    assert "gpu_manager_config.json:10:18: auto_manage" in done.stderr
    assert "comes with leases, which this version does not have" in done.stderr
    assert berth.jobs() == []


def test_check_shows_it_as_a_native_job_file(berth, config):
    shown = json.loads(berth.cli("check", "--json", config, check=0).stdout)
    [job] = shown["jobs"]
    assert job["gpus"] == "1..2" and job["env"] == {"LEVEL": "three"}
    assert shown["rules"]["sample_age_max"] == "5000ms"
