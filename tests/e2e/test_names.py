"""berth under the names of the programs it stands in for: they speak for themselves."""

import subprocess


def called(berth, tmp_path, program, *words):
    link = tmp_path / program
    if not link.exists():
        link.symlink_to(berth.bin_dir / "berth")
    return subprocess.run([link, *words], cwd=tmp_path, env=berth.environment(), text=True,
                          capture_output=True, check=False)


def test_help_and_errors_have_the_name_that_was_called(make_instance, tmp_path):
    berth = make_instance()
    for program in ("gpu_scheduler", "main_gpu", "main_gpus"):
        shown = called(berth, tmp_path, program, "--help")
        assert shown.returncode == 0 and f"Usage: {program} [" in shown.stdout, shown
        assert "Usage: berth" not in shown.stdout
        wrong = called(berth, tmp_path, program, "--no-such-option")
        assert wrong.returncode == 2 and wrong.stderr.startswith(f"{program}: "), wrong
        assert f"try: {program} --help" in wrong.stderr
    shown = berth.cli("run", "--help", check=0)
    assert "Usage: berth run [" in shown.stdout


def test_a_file_for_several_cards_belongs_to_main_gpus(make_instance, tmp_path):
    (tmp_path / "command").mkdir()
    (tmp_path / "command" / "command_gpus.txt").write_text("1\npython a.py\n2\n20\n")
    wrong = called(make_instance(), tmp_path, "main_gpu", "--command-file", "command/command_gpus.txt")
    assert wrong.returncode != 0 and "for several use main_gpus" in wrong.stderr, wrong


def test_a_plain_number_of_memory_is_mib(make_instance, tmp_path):
    wrong = make_instance().cli("run", "--min-memory", "abc", "x.yaml", cwd=tmp_path, check=2)
    assert "write for example 8000 (MiB) or 8GiB" in wrong.stderr
