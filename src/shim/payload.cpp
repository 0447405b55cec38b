#include "shim/payload.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>

#include "base/content_hash.hpp"
#include "shim/sys.hpp"

namespace berth::shim {
namespace {

constexpr int kExitCannotStart = 127;
constexpr std::uint32_t kMaskBits = 8 * sizeof(unsigned long);

/// The child's side, from fork to exec.
class Newborn {
 public:
  Newborn(const LaunchSpecView& spec, int report) : spec_(spec), report_(report) {}

  [[noreturn]] void run(std::uint32_t index, int output, int cgroup_procs, pid_t parent) {
    ::setpgid(0, 0);
    // Nobody may run unsupervised: should the supervisor die, this goes with it. The descriptor of
    // the record stays open until exec, so its lock tells recovery that somebody is still on the
    // way to becoming visible.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) {
      ::_exit(kExitCannotStart);
    }
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    if (cgroup_procs >= 0 && ::write(cgroup_procs, "0", 1) < 0) {
      // Without a cgroup supervision is the same, only the peak of memory is not known.
    }
    ::umask(static_cast<mode_t>(spec_.umask));
    ::setpriority(PRIO_PROCESS, 0, spec_.nice);
    // Before the folders of the log are made: one that is not there must not come to be that way.
    if (!spec_.cwd.empty() && ::chdir(spec_.cwd.data()) != 0) {
      give_up(Stage::cwd, errno, spec_.cwd);
    }
    if (index == 0) {
      check_unchanged();
    }
    connect_streams(output);
    stay_on_cpus();
    build_arguments(index);
    execute();
  }

 private:
  [[noreturn]] void give_up(Stage stage, int error, std::string_view name) {
    StartFailure failure;
    failure.stage = stage;
    failure.error = error;
    failure.size = size_;
    failure.largest = largest_;
    name = name.substr(0, sizeof failure.name - 1);
    std::memcpy(failure.name, name.data(), name.size());
    if (::write(report_, &failure, sizeof failure) < 0) {
      // Then the exit code below is all that is known.
    }
    ::_exit(kExitCannotStart);
  }

  void connect_streams(int output) {
    const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null < 0) {
      give_up(Stage::resources, errno, "/dev/null");
    }
    if (output < 0) {
      Text path;
      path.add(spec_.log);
      make_parents(path.c_str());
      output = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0666);
      if (output < 0) {
        give_up(Stage::log, errno, spec_.log);
      }
      tell_size(output);
    }
    if (::dup2(null, 0) < 0 || ::dup2(output, 1) < 0 || ::dup2(output, 2) < 0) {
      give_up(Stage::resources, errno, "standard streams");
    }
  }

  /// What was submitted with a file must not run with another: it would go down as what it is not.
  void check_unchanged() {
    SpecReader variables(spec_.variables);
    for (std::uint32_t i = 0; i < spec_.variable_count; ++i) {
      std::string_view entry = variables.string();
      if (!entry.starts_with(kUnchangedVariable)) {
        continue;
      }
      entry.remove_prefix(kUnchangedVariable.size());
      char* path = nullptr;
      const std::uint64_t wanted = std::strtoull(entry.data(), &path, 16);
      if (*path == ' ') {
        check_content(path + 1, wanted);
      }
    }
  }

  void check_content(const char* path, std::uint64_t wanted) {
    int fd = ::open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) {
      give_up(Stage::changed, errno, path);
    }
    ContentHash hash;
    char buffer[16384];
    ssize_t got = 0;
    while ((got = ::read(fd, buffer, sizeof buffer)) > 0) {
      hash.add({buffer, static_cast<std::size_t>(got)});
    }
    if (got < 0 || hash.value() != wanted) {
      give_up(Stage::changed, got < 0 ? errno : 0, path);
    }
    close_fd(fd);
  }

  /// What was there before is not this attempt's.
  void tell_size(int log) const {
    struct stat status{};
    if (::fstat(log, &status) != 0 || !S_ISREG(status.st_mode)) {
      return;
    }
    StartFailure none;
    none.size = static_cast<std::uint64_t>(status.st_size);
    if (::write(report_, &none, sizeof none) < 0) {
      // Then more is looked at than need be.
    }
  }

  /// Being near to the cards is a favour: without it the command runs all the same, and the log
  /// says so.
  void stay_on_cpus() const {
    if (spec_.cpu_count == 0) {
      return;
    }
    unsigned long mask[kLaunchCpusMax / kMaskBits] = {};
    SpecReader cpus(spec_.cpus);
    for (std::uint32_t i = 0; i < spec_.cpu_count; ++i) {
      const auto cpu = cpus.number<std::uint32_t>();
      mask[cpu / kMaskBits] |= 1UL << (cpu % kMaskBits);
    }
    // The kernel leaves out the CPUs that this cgroup may not use, and fails if none is left.
    if (::sched_setaffinity(0, sizeof mask, reinterpret_cast<const cpu_set_t*>(mask)) != 0) {
      Text note;
      note.add("[berth: cannot stay on the CPUs near the GPUs: errno ")
          .add(static_cast<std::uint64_t>(errno))
          .add("]\n");
      if (::write(STDERR_FILENO, note.c_str(), note.view().size()) < 0) {
        // Then nobody learns of it.
      }
    }
  }

  /// The strings lie NUL-terminated in the spec; exec takes pointers without const, and only reads.
  char* pointer_to(std::string_view text) {
    const std::uint64_t size = text.size() + 1;
    size_ += size;
    largest_ = size > largest_ ? size : largest_;
    return const_cast<char*>(text.data());
  }

  void build_arguments(std::uint32_t index) {
    SpecReader in(spec_.commands);
    std::uint32_t count = 0;
    for (std::uint32_t i = 0;; ++i) {
      shell_ = in.number<std::uint32_t>() != 0;
      count = in.number<std::uint32_t>();
      if (i == index) {
        break;
      }
      for (std::uint32_t a = 0; a < count; ++a) {
        (void)in.string();
      }
    }
    // In front: room for `/bin/sh script` or `bash -c`; at the end: the terminator.
    auto** arguments = static_cast<char**>(std::calloc(std::size_t{count} + 3, sizeof(char*)));
    environment_ =
        static_cast<char**>(std::calloc(std::size_t{spec_.variable_count} + 1, sizeof(char*)));
    if (arguments == nullptr || environment_ == nullptr) {
      give_up(Stage::resources, ENOMEM, "arguments");
    }
    argv_ = arguments + 2;
    for (std::uint32_t a = 0; a < count; ++a) {
      argv_[a] = pointer_to(in.string());
    }
    SpecReader variables(spec_.variables);
    for (std::uint32_t i = 0; i < spec_.variable_count; ++i) {
      environment_[i] = pointer_to(variables.string());
    }
  }

  [[noreturn]] void execute() {
    if (shell_) {
      static char bash[] = "bash";
      static char sh[] = "sh";
      static char flag[] = "-c";
      argv_ -= 2;
      argv_[0] = bash;
      argv_[1] = flag;
      ::execve("/bin/bash", argv_, environment_);
      if (errno == ENOENT) {
        argv_[0] = sh;
        ::execve("/bin/sh", argv_, environment_);
      }
      give_up(Stage::exec, errno, errno == ENOENT ? "/bin/sh" : "bash -c");
    }
    if (argv_[0] == nullptr) {
      give_up(Stage::exec, EINVAL, "");  // no encoder lets it through
    }
    const std::string_view file = argv_[0];
    if (file.empty() || file.find('/') != std::string_view::npos) {
      try_file(argv_[0]);
      give_up_on(argv_[0], errno);
    }
    search_path(file);
  }

  /// As execvp does, but with the PATH of the job.
  [[noreturn]] void search_path(std::string_view file) {
    std::string_view path = "/usr/local/bin:/usr/bin:/bin";
    constexpr std::string_view kPrefix = "PATH=";
    for (char** entry = environment_; *entry != nullptr; ++entry) {
      if (std::string_view(*entry).starts_with(kPrefix)) {
        path = std::string_view(*entry).substr(kPrefix.size());
      }
    }
    int error = ENOENT;
    for (bool more = true; more;) {
      const auto colon = path.find(':');
      const std::string_view folder = path.substr(0, colon);
      more = colon != std::string_view::npos;
      path.remove_prefix(more ? colon + 1 : path.size());
      Text candidate;
      candidate.add(folder.empty() ? "." : folder).add("/").add(file);
      if (candidate.cut()) {
        continue;
      }
      try_file(candidate.c_str());
      if (errno == EACCES) {
        // Found but not allowed; perhaps a later folder has a better one. A folder that may not be
        // searched says the same, but then nothing was found.
        if (::access(candidate.c_str(), F_OK) == 0) {
          error = EACCES;
        }
      } else if (errno == ENOENT && ::access(candidate.c_str(), F_OK) == 0) {
        give_up(Stage::interpreter, ENOENT, candidate.view());
      } else if (errno != ENOENT && errno != ENOTDIR && errno != ESTALE && errno != ENODEV &&
                 errno != ETIMEDOUT && errno != ENAMETOOLONG) {
        give_up(Stage::exec, errno, file);
      }
    }
    give_up(Stage::exec, error, file);
  }

  void try_file(char* file) {
    ::execve(file, argv_, environment_);
    if (errno == ENOEXEC) {  // a script without a first line: by tradition for the shell
      static char sh[] = "sh";
      char* first = argv_[0];
      argv_[-1] = sh;
      argv_[0] = file;
      ::execve("/bin/sh", argv_ - 1, environment_);
      const int error = errno;
      argv_[0] = first;
      errno = error;
    }
  }

  [[noreturn]] void give_up_on(const char* file, int error) {
    const bool there = error == ENOENT && ::access(file, F_OK) == 0;
    struct stat status{};
    if (error == EACCES && ::stat(file, &status) == 0 && S_ISDIR(status.st_mode)) {
      error = EISDIR;  // what exec calls a lack of permission
    }
    give_up(there ? Stage::interpreter : Stage::exec, error, file);
  }

  const LaunchSpecView& spec_;
  int report_;
  bool shell_ = false;
  char** argv_ = nullptr;
  char** environment_ = nullptr;
  std::uint64_t size_ = 0;
  std::uint64_t largest_ = 0;
};

}  // namespace

std::string_view to_string(Stage stage) {
  switch (stage) {
    case Stage::none:
      break;
    case Stage::cwd:
      return "cwd";
    case Stage::log:
      return "log";
    case Stage::exec:
      return "exec";
    case Stage::interpreter:
      return "interpreter";
    case Stage::resources:
      return "resources";
    case Stage::changed:
      return "changed";
  }
  return "";
}

Child start_command(const LaunchSpecView& spec, std::uint32_t index, int output, int cgroup_procs) {
  Child child;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return child;
  }
  const pid_t parent = ::getpid();
  child.pid = ::fork();
  if (child.pid == 0) {
    ::close(ends[0]);
    Newborn(spec, ends[1]).run(index, output, cgroup_procs, parent);
  }
  const int error = errno;
  ::close(ends[1]);
  child.report = ends[0];
  if (child.pid < 0) {
    close_fd(child.report);
    errno = error;
    return child;
  }
  ::setpgid(child.pid,
            child.pid);  // whoever is first; the group exists before anybody is signalled
  ::fcntl(child.report, F_SETFL, O_NONBLOCK);
  return child;
}

}  // namespace berth::shim
