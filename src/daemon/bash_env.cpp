#include "daemon/bash_env.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string_view>

#include <fmt/format.h>

namespace berth {
namespace {

// The first lines must cost next to nothing: every bash of every job reads them. Everything must
// bear `set -eu` of the scripts that use it, and must not disturb their variables.
constexpr std::string_view kText =
    R"sh(# Written by berth, read by every bash of its jobs. `conda activate` needs a shell function that the
# start-up files of an interactive shell define; here they are defined when a job asks for them.
if [ -n "${BERTH_USER_BASH_ENV-}" ]; then
  eval ". \"$BERTH_USER_BASH_ENV\""
fi

__berth_text=${BASH_EXECUTION_STRING-}
if [ -z "$__berth_text" ] && [ -f "$0" ] && [ -r "$0" ]; then
  LC_ALL=C read -r -d '' -n 65536 __berth_text <"$0" || :
fi
case $__berth_text in
  *conda\ *activate* | *mamba\ *activate* | *conda\ run* | *mamba\ run*) unset __berth_text ;;
  *) unset __berth_text; return 0 ;;
esac

# __berth_first FILE...: prints the first that can be executed.
__berth_first() {
  local file
  for file in "$@"; do
    if [ -n "$file" ] && [ -f "$file" ] && [ -x "$file" ]; then
      printf '%s\n' "$file"
      return 0
    fi
  done
  return 1
}

# __berth_named NAME FILE: prints FILE if that is its name.
__berth_named() {
  case ${2-} in
    */"$1") printf '%s\n' "$2" ;;
  esac
}

# __berth_find NAME: where conda, mamba or micromamba is.
__berth_find() {
  local home=${HOME-} root
  local -a places=("$(__berth_named "$1" "${CONDA_EXE-}")" "$(__berth_named "$1" "${MAMBA_EXE-}")")
  for root in "${MAMBA_ROOT_PREFIX-}" "${CONDA_PREFIX-}" "${CONDA_PREFIX-}/../.."; do
    case $root in
      '' | /../..) ;;
      *) places+=("$root/bin/$1") ;;
    esac
  done
  if [ -n "${CONDA_EXE-}" ]; then
    places+=("${CONDA_EXE%/*}/$1")
  fi
  places+=("$(type -P "$1" || :)")
  for root in "$home"/{miniconda3,anaconda3,miniforge3,mambaforge,miniconda,anaconda,micromamba} \
      "$home"/{.local,.conda,opt/miniconda3,opt/anaconda3} "$home" \
      /opt/{conda,miniconda3,anaconda3,miniforge3,mambaforge,miniconda,anaconda} \
      /usr/local/{miniconda3,anaconda3,miniforge3} /usr/local; do
    places+=("$root/bin/$1")
  done
  __berth_first "${places[@]}"
}

# __berth_load NAME: replaces our function by the program's own.
__berth_load() {
  local exe root
  if ! exe=$(__berth_find "$1"); then
    [ "$1" = conda ] && root=CONDA_EXE || root=MAMBA_EXE
    echo "berth: $1 was not found: neither the environment this job was submitted from names it" \
      "(CONDA_EXE, MAMBA_EXE, CONDA_PREFIX, PATH), nor is it in ~/miniconda3, ~/anaconda3," \
      "~/miniforge3, /opt/conda or the like; submit from a shell where '$1' works, or give the job" \
      "$root=/path/to/bin/$1" >&2
    return 127
  fi
  root=${exe%/bin/*}
  unset -f "$1"
  case $1 in
    conda)
      if [ -r "$root/etc/profile.d/conda.sh" ]; then
        . "$root/etc/profile.d/conda.sh"
      else
        eval "$("$exe" shell.bash hook)"
      fi
      ;;
    mamba)
      if [ -r "$root/etc/profile.d/mamba.sh" ]; then
        if [ -r "$root/etc/profile.d/conda.sh" ]; then
          . "$root/etc/profile.d/conda.sh"
        fi
        . "$root/etc/profile.d/mamba.sh"
      else
        eval "$("$exe" shell hook --shell bash)"
      fi
      ;;
    *) eval "$("$exe" shell hook --shell bash)" ;;
  esac
}

# __berth_call NAME ARGUMENT...: all but activating works without its function.
__berth_call() {
  local exe
  case ${2-} in
    activate | deactivate)
      __berth_load "$1" || return
      "$@"
      ;;
    *)
      exe=$(__berth_find "$1") || exe=
      if [ -n "$exe" ]; then
        shift
        "$exe" "$@"
      else
        __berth_load "$1"
      fi
      ;;
  esac
}

conda() { __berth_call conda "$@"; }
mamba() { __berth_call mamba "$@"; }
micromamba() { __berth_call micromamba "$@"; }
)sh";

bool is_there(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return in && text.str() == kText;
}

}  // namespace

std::string bash_env_path(const std::string& dir) {
  return dir + "/bash_env";
}

Status write_bash_env(const std::string& dir) {
  const std::string path = bash_env_path(dir);
  if (is_there(path)) {
    return {};
  }
  // A job may be reading the one of an earlier version.
  const std::string fresh = path + ".new";
  std::ofstream out(fresh, std::ios::binary | std::ios::trunc);
  out << kText;
  out.close();
  if (!out || std::rename(fresh.c_str(), path.c_str()) != 0) {
    return fail(ErrorCode::io, fmt::format("cannot write '{}': {}; 'conda activate' will not work "
                                           "in jobs",
                                           path, std::strerror(errno)));
  }
  return {};
}

}  // namespace berth
