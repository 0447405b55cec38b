#include "snapshot/tree_files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <string_view>

#include "base/fd.hpp"
#include "base/utf8.hpp"

extern char** environ;  // NOLINT: as POSIX has it

namespace berth {
namespace {

namespace fs = std::filesystem;

constexpr int kNestedMax = 8;
constexpr std::size_t kBesideMax = 10'000;
constexpr std::array<std::string_view, 8> kLeftOut{
    ".git", ".hg", ".svn", "__pycache__", ".cache", ".mypy_cache", ".pytest_cache", ".ruff_cache"};

bool left_out(const fs::path& name) {
  return std::ranges::find(kLeftOut, name.native()) != kLeftOut.end() || name.extension() == ".pyc";
}

/// What `git -C dir …` prints; nothing where it fails or there is no git.
std::optional<std::string> ask_git(const fs::path& dir, std::vector<std::string> words) {
  words.insert(words.begin(), {"git", "-C", dir.native()});
  std::vector<char*> argv;
  for (std::string& word : words) {
    argv.push_back(word.data());
  }
  argv.push_back(nullptr);
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return std::nullopt;
  }
  const Fd from(ends[0]);
  Fd to(ends[1]);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, to.get(), STDOUT_FILENO);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, "git", &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  to.reset();
  if (error != 0) {
    return std::nullopt;
  }
  std::string text;
  std::array<char, 64 * 1024> buffer{};
  ssize_t size = 0;
  while ((size = ::read(from.get(), buffer.data(), buffer.size())) > 0 ||
         (size < 0 && errno == EINTR)) {
    text.append(buffer.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? std::optional(std::move(text))
                                                       : std::nullopt;
}

/// The parts between zero bytes.
std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const auto end = text.find('\0');
    if (end != 0) {
      parts.emplace_back(text.substr(0, end));
    }
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return parts;
}

Status list_with_git(const fs::path& below, TreeFiles& tree, int depth) {
  const fs::path top = tree.root / below;
  const auto tracked = ask_git(top, {"ls-files", "-z", "--cached", "--recurse-submodules"});
  const auto others = ask_git(top, {"ls-files", "-z", "--others", "--exclude-standard"});
  if (!tracked || !others) {
    return fail(ErrorCode::io, fmt::format("git does not list the files of '{}'; try: git -C '{}' "
                                           "ls-files",
                                           to_utf8(top.native()), to_utf8(top.native())));
  }
  for (std::string& name : split(*tracked)) {
    tree.files.push_back(below / name);
  }
  for (std::string& name : split(*others)) {
    if (!name.ends_with('/')) {
      tree.files.push_back(below / name);
    } else if (depth < kNestedMax) {  // a repository in the repository
      name.pop_back();
      TRY(list_with_git(below / name, tree, depth + 1));
    }
  }
  const auto ignored = ask_git(
      top, {"ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"});
  for (std::string& name : split(ignored.value_or(std::string()))) {
    if (name.ends_with('/')) {
      name.pop_back();
    }
    const fs::path path = below / name;
    if (!left_out(path.filename()) && tree.beside.size() < kBesideMax) {
      tree.beside.push_back(path);
    }
  }
  return {};
}

/// Large, made by a tool, and useless as a copy.
bool is_environment(const fs::path& dir) {
  std::error_code error;
  return dir.filename() == "node_modules" || fs::exists(dir / "pyvenv.cfg", error) ||
         fs::exists(dir / "conda-meta", error);
}

Status list_by_walking(TreeFiles& tree) {
  std::error_code error;
  fs::recursive_directory_iterator at(tree.root, error);
  const fs::recursive_directory_iterator end;
  while (!error && at != end) {
    const fs::path path = at->path();
    const fs::file_status status = at->symlink_status(error);
    if (!error && left_out(path.filename())) {
      at.disable_recursion_pending();
    } else if (!error && fs::is_directory(status)) {
      if (is_environment(path)) {
        tree.beside.push_back(path.lexically_relative(tree.root));
        at.disable_recursion_pending();
      }
    } else if (fs::is_regular_file(status) || fs::is_symlink(status)) {
      tree.files.push_back(path.lexically_relative(tree.root));
    }
    error.clear();  // what vanishes meanwhile is not there
    at.increment(error);
  }
  if (error) {
    return fail(ErrorCode::io, fmt::format("cannot read the directory '{}': {}",
                                           to_utf8(tree.root.native()), error.message()));
  }
  return {};
}

/// Whether every step from the root to the folder is a folder.
bool is_folder(fs::path at, const fs::path& folder) {
  std::error_code error;
  return std::ranges::all_of(folder, [&](const fs::path& step) {
    at /= step;
    return fs::is_directory(fs::symlink_status(at, error));
  });
}

/// git still knows the files of a folder in whose place there is a link or a file by now.
void forget_replaced(TreeFiles& tree) {
  fs::path folder;  // of the file before
  bool there = true;
  std::erase_if(tree.files, [&](const fs::path& file) {
    if (file.parent_path() != folder) {
      folder = file.parent_path();
      there = is_folder(tree.root, folder);
    }
    return !there;
  });
}

bool below_git(fs::path dir) {
  std::error_code error;
  while (!fs::exists(dir / ".git", error)) {
    if (!dir.has_relative_path()) {
      return false;
    }
    dir = dir.parent_path();
  }
  return true;
}

}  // namespace

Result<TreeFiles> list_tree(const std::string& dir) {
  TreeFiles tree;
  auto top = ask_git(dir, {"rev-parse", "--show-toplevel"});
  if (top && !top->empty()) {
    top->pop_back();  // the newline
    // The same place under the name the user knows it by, where git says how far up it is.
    const auto up = ask_git(dir, {"rev-parse", "--show-cdup"});
    tree.root = *top;
    if (up) {
      const fs::path named = (fs::path(dir) / up->substr(0, up->find('\n'))).lexically_normal();
      std::error_code error;
      if (fs::equivalent(named, tree.root, error)) {
        tree.root = named;
      }
    }
    if (!tree.root.has_filename()) {
      tree.root = tree.root.parent_path();
    }
    TRY(list_with_git("", tree, 0));
  } else {
    tree.root = fs::path(dir).lexically_normal();
    if (!tree.root.has_filename()) {
      tree.root = tree.root.parent_path();
    }
    if (below_git(tree.root)) {
      tree.warnings.push_back(fmt::format(
          "git does not answer for '{}', so ignored files are copied, too; try: git -C '{}' status",
          to_utf8(dir), to_utf8(dir)));
    }
    TRY(list_by_walking(tree));
  }
  std::ranges::sort(tree.files);
  const auto twice = std::ranges::unique(tree.files);
  tree.files.erase(twice.begin(), twice.end());
  forget_replaced(tree);
  return tree;
}

}  // namespace berth
