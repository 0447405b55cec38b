#include "daemon/settings.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <functional>

#include <fmt/format.h>

#include "base/fd.hpp"
#include "core/rule_table.hpp"
#include "jobspec/yaml_tree.hpp"

namespace berth {
namespace {

constexpr std::size_t kFileMax = 1024 * 1024;

struct Entry {
  std::string key;
  std::string value;
  Position key_at;
  Position value_at;
  bool scalar = true;
};

void flatten(const Node& map, const std::string& prefix, std::vector<Entry>& out) {
  for (const Node::Entry& entry : map.entries) {
    const std::string key = prefix + entry.key;
    if (entry.value && entry.value->kind == Node::Kind::map) {
      flatten(*entry.value, key + ".", out);
      continue;
    }
    const bool scalar = entry.value && entry.value->kind == Node::Kind::scalar;
    out.push_back({key, scalar ? entry.value->text : "", entry.key_at,
                   entry.value ? entry.value->at : entry.key_at, scalar});
  }
}

/// Entries, or what is wrong with the text as a whole.
std::vector<Entry> entries_of(std::string_view text, std::vector<std::string>& problems) {
  Diagnostics diagnostics("berth.yaml");
  const NodePtr root = parse_yaml(text, diagnostics);
  for (const Diagnostic& diagnostic : diagnostics.take()) {
    problems.push_back(fmt::format("berth.yaml:{}: {}", diagnostic.at.line, diagnostic.message));
  }
  std::vector<Entry> entries;
  if (root && root->kind == Node::Kind::map) {
    flatten(*root, "", entries);
  } else if (root && root->kind != Node::Kind::null) {
    problems.push_back(fmt::format("berth.yaml:{}: expected `key: value` lines", root->at.line));
  }
  return entries;
}

/// Missing: empty.
Result<std::string> read_file(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) {
    if (errno == ENOENT) {
      return std::string();
    }
    return fail_errno(fmt::format("cannot read {}", path), errno);
  }
  std::string text;
  char buffer[4096];
  while (true) {
    const ssize_t got = ::read(fd.get(), buffer, sizeof buffer);
    if (got < 0 && errno != EINTR) {
      return fail_errno(fmt::format("cannot read {}", path), errno);
    }
    if (got == 0) {
      return text;
    }
    text.append(buffer, static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (text.size() > kFileMax) {
      return fail(ErrorCode::invalid, fmt::format("{} is larger than 1 MiB", path));
    }
  }
}

/// Quoted where YAML would take it for something else.
std::string scalar(const std::string& value) {
  const bool plain = !value.empty() && std::ranges::all_of(value, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '_' || c == '%';
  }) && value.front() != '%';
  if (plain) {
    return value;
  }
  std::string quoted = "'";
  for (const char c : value) {
    quoted += c == '\'' ? "''" : std::string(1, c);
  }
  return quoted + "'";
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

/// Replaces the value on its line and keeps a comment behind it.
Status replace_value(std::string& line, const Entry& entry, const std::string& value) {
  const std::size_t from = entry.value_at.column - 1;
  if (entry.value_at.line != entry.key_at.line || from > line.size()) {
    return fail(ErrorCode::conflict,
                fmt::format("berth.yaml:{}: the value of '{}' stands on a line of its own; change "
                            "it by hand",
                            entry.key_at.line, entry.key));
  }
  std::size_t to = line.size();
  if (const char quote = from < line.size() ? line[from] : ' '; quote == '"' || quote == '\'') {
    const std::size_t close = line.find(quote, from + 1);
    to = close == std::string::npos ? line.size() : close + 1;
  } else if (const std::size_t end = line.find_first_of(",}", from);
             line.find('{') < from && end != std::string::npos) {
    to = end;
  } else if (const std::size_t comment = line.find(" #", from); comment != std::string::npos) {
    to = comment;
  }
  while (to > from && line[to - 1] == ' ') {
    --to;  // what stands behind it stays where it is
  }
  line.replace(from, to - from, scalar(value));
  return {};
}

Status write_whole(const std::string& path, const std::string& text) {
  const std::string draft = path + ".new";
  const Fd fd(::open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) {
    return fail_errno(fmt::format("cannot write {}", draft), errno);
  }
  struct stat old{};
  if (::stat(path.c_str(), &old) == 0) {
    ::fchmod(fd.get(), old.st_mode & 0777U);
  }
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t wrote = ::write(fd.get(), text.data() + done, text.size() - done);
    if (wrote < 0 && errno != EINTR) {
      const int error = errno;
      ::unlink(draft.c_str());
      return fail_errno(fmt::format("cannot write {}", draft), error);
    }
    done += static_cast<std::size_t>(std::max<ssize_t>(wrote, 0));
  }
  if (::fsync(fd.get()) != 0 || std::rename(draft.c_str(), path.c_str()) != 0) {
    const int error = errno;
    ::unlink(draft.c_str());
    return fail_errno(fmt::format("cannot replace {}", path), error);
  }
  const Fd directory(::open(std::filesystem::path(path).parent_path().c_str(),
                            O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory) {
    ::fsync(directory.get());
  }
  return {};
}

}  // namespace

Settings parse_settings(std::string_view text) {
  Settings settings;
  Rules scratch;
  for (const Entry& entry : entries_of(text, settings.problems)) {
    const Status good =
        entry.scalar ? set_rule(scratch, entry.key, entry.value)
                     : fail(ErrorCode::invalid, fmt::format("{}: expected one value", entry.key));
    if (good) {
      settings.values.emplace_back(entry.key, entry.value);
    } else {
      settings.problems.push_back(
          fmt::format("berth.yaml:{}: {}; ignored", entry.key_at.line, good.error().message));
    }
  }
  return settings;
}

Settings read_settings(const std::string& path) {
  auto text = read_file(path);
  if (!text) {
    Settings settings;
    settings.problems.push_back(text.error().message);
    return settings;
  }
  return parse_settings(*text);
}

Result<std::string> edit_settings(std::string text,
                                  const std::vector<std::pair<std::string, std::string>>& values) {
  for (const auto& [key, value] : values) {
    std::vector<std::string> problems;
    const std::vector<Entry> entries = entries_of(text, problems);
    if (!problems.empty()) {
      return fail(ErrorCode::conflict, problems.front() + "; repair it first");
    }
    std::vector<std::string> lines = lines_of(text);
    const auto known = std::ranges::find(entries, key, &Entry::key);
    if (known == entries.end()) {
      lines.push_back(fmt::format("{}: {}", key, scalar(value)));
    } else if (!known->scalar) {
      return fail(ErrorCode::conflict, fmt::format("berth.yaml:{}: '{}' has no single value; "
                                                   "change it by hand",
                                                   known->key_at.line, key));
    } else {
      TRY(replace_value(lines.at(known->key_at.line - 1), *known, value));
    }
    text.clear();
    for (const std::string& line : lines) {
      text += line + "\n";
    }
  }
  // What was written must be what will be read.
  const Settings again = parse_settings(text);
  for (const auto& wanted : values) {
    if (std::ranges::find(again.values, wanted) == again.values.end() &&
        std::ranges::count(values, wanted.first, &std::pair<std::string, std::string>::first) ==
            1) {
      return fail(
          ErrorCode::conflict,
          fmt::format("berth.yaml: '{}' cannot be changed there; do it by hand", wanted.first));
    }
  }
  return text;
}

Status save_settings(const std::string& path,
                     const std::vector<std::pair<std::string, std::string>>& values) {
  TRY_ASSIGN(std::string text, read_file(path));
  TRY_ASSIGN(const std::string edited, edit_settings(std::move(text), values));
  return write_whole(path, edited);
}

}  // namespace berth
