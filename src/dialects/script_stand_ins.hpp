#pragma once
// srun and scontrol for scripts that call them where there are none.

#include <string_view>

namespace berth {

/// A function for any shell, on one line so that a script behind it keeps its line numbers. It runs
/// its command as often as there are tasks, each with its number, and fails if one of them does.
/// Options but the number of tasks are left out: the script has its GPUs and processors already.
inline constexpr std::string_view kSrunFunction =
    "srun() ( n=${SLURM_NTASKS:-1}; "
    "while [ $# -gt 0 ]; do case $1 in "
    "--) shift; break;; "
    "--ntasks=*|--ntasks-per-node=*) n=${1#*=}; shift;; "
    "-n|--ntasks|--ntasks-per-node) n=${2:-1}; shift; [ $# -eq 0 ] || shift;; "
    "-n?*) n=${1#-n}; shift;; "
    "--*=*) shift;; "
    // Those that take no value.
    "-[EHKOQXZklsuv]*|--disable-status|--exact|--exclusive|--hold|--kill-on-bad-exit|--label|"
    "--no-kill|--overcommit|--overlap|--oversubscribe|--preserve-env|--pty|--quiet|--spread-job|"
    "--unbuffered|--verbose|--wait-all-nodes) shift;; "
    "-[!-]?*) shift;; "
    "-*) shift; [ $# -eq 0 ] || shift;; "
    "*) break;; esac; done; "
    "[ $# -gt 0 ] || { echo 'srun: no command was given' >&2; exit 1; }; "
    "[ \"$n\" -gt 1 ] || exec \"$@\"; "
    "i=0; p=; while [ $i -lt \"$n\" ]; do SLURM_PROCID=$i SLURM_LOCALID=$i \"$@\" & "
    "p=\"$p $!\"; i=$((i + 1)); done; "
    "eval \"set -- $p\"; r=0; for p; do wait \"$p\" || r=$?; done; exit $r ); "
    // For scripts that this one runs.
    "[ -z \"${BASH_VERSION:-}\" ] || export -f srun; ";

/// Likewise; it tells the names in a list of machines, of which there is one. What else scontrol
/// does has no meaning here, and a script that goes on with nothing is worse than one that fails.
inline constexpr std::string_view kScontrolFunction =
    "scontrol() ( case \"${1:-} ${2:-}\" in 'show hostname'|'show hostnames') ;; "
    "*) echo \"scontrol: only 'show hostnames' is there, not '$*'\" >&2; exit 1;; esac; "
    "l=${3:-${SLURM_JOB_NODELIST:-}}; "
    "case $l in *[[]*) echo \"scontrol: '$l' is not a list of names with commas\" >&2; exit 1;; "
    "'') echo 'scontrol: no list of machines was given' >&2; exit 1;; esac; "
    "IFS=,; set -f; for h in $l; do printf '%s\\n' \"$h\"; done ); "
    "[ -z \"${BASH_VERSION:-}\" ] || export -f scontrol; ";

}  // namespace berth
