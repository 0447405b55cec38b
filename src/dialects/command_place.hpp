#pragma once
// Which command file is meant where none is given.

#include <filesystem>
#include <optional>

#include "dialects/dialect.hpp"
#include "jobspec/other_files.hpp"

namespace berth {

/// What a scheduler's program takes that is started in `directory` without a word: the
/// configuration there, if that names a command file for `options.cards`, otherwise the command
/// file that has the usual name. None: neither is there, or `options` do not say which of the
/// programs it is.
[[nodiscard]] std::optional<std::filesystem::path> usual_command_file(
    const std::filesystem::path& directory, const DialectOptions& options, const ReadFile& read);

/// The command file in `directory` that has the usual name for single or multi cards.
[[nodiscard]] std::optional<std::filesystem::path> command_file_in(
    const std::filesystem::path& directory, DialectOptions::Cards cards, std::uint32_t index,
    const ReadFile& read);
/// The names it may have, for people: "command_gpus.txt and command/command_gpus.txt".
[[nodiscard]] std::string usual_names(DialectOptions::Cards cards, std::uint32_t index);

}  // namespace berth
