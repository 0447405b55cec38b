// stop, doctor, completion, and what packaging and shells call: __complete and __man.

#include <filesystem>
#include <fstream>
#include <memory>

#include "cli/define.hpp"
#include "cli/program_doc.hpp"

namespace berth::cli {
namespace {

struct Tools {
  bool json = false;
  std::string word;
};

Status write_page(const std::filesystem::path& file, const std::string& text) {
  std::ofstream out(file);
  out << text;
  out.close();
  if (!out) {
    return fail(ErrorCode::io, fmt::format("cannot write '{}'", printable(file.native())));
  }
  return {};
}

Outcome write_pages(const CLI::App& app, const std::string& dir) {
  std::error_code error;
  std::filesystem::create_directories(dir, error);
  if (error) {
    return fail(ErrorCode::io,
                fmt::format("cannot create '{}': {}", printable(dir), error.message()));
  }
  const ProgramDoc program = describe_program(app);
  const std::filesystem::path base(dir);
  TRY(write_page(base / "berth.1", man_page(program)));
  for (const CommandDoc& command : program.commands) {
    TRY(write_page(base / ("berth-" + command.name + ".1"), man_page(program, command)));
  }
  return 0;
}

}  // namespace

void define_tools(CLI::App& app, Action& action) {
  const auto in = std::make_shared<Tools>();
  CLI::App& stop = *command(app, "stop", "Stop the daemon; running jobs go on",
                            "  berth stop     the next berth command starts it again");
  stop.callback([&action] { action = run_stop; });

  CLI::App& doctor =
      *command(app, "doctor", "Find and explain what is wrong with this machine",
               "  berth doctor\n"
               "  berth doctor --json | jq '.[] | select(.result != \"ok\")'\n"
               "It starts no daemon and changes nothing. Exit code 1 if something is wrong.");
  json_flag(doctor, in->json);
  color_option(doctor);
  doctor.callback([in, &action] { action = [in] { return run_doctor(in->json); }; });

  CLI::App& completion =
      *command(app, "completion", "Print the completion script of a shell",
               "  berth completion bash > ~/.local/share/bash-completion/completions/berth\n"
               "  berth completion zsh > ~/.zfunc/_berth     with ~/.zfunc in fpath\n"
               "  berth completion fish > ~/.config/fish/completions/berth.fish");
  completion.add_option("SHELL", in->word, "whose")->required()->type_name("bash|zsh|fish");
  completion.callback([in, &app, &action] {
    if (in->word != "bash" && in->word != "zsh" && in->word != "fish") {
      throw CLI::ValidationError("SHELL",
                                 fmt::format("'{}' is not bash, zsh or fish", printable(in->word)));
    }
    action = [in, &app]() -> Outcome {
      const ProgramDoc program = describe_program(app);
      print(in->word == "bash"  ? bash_completion(program)
            : in->word == "zsh" ? zsh_completion(program)
                                : fish_completion(program));
      return 0;
    };
  });

  CLI::App& complete =
      *command(app, "__complete", "What a shell offers", "  berth __complete jobs");
  complete.add_option("WHAT", in->word, "")->required()->type_name("jobs|queues");
  complete.group("");
  complete.callback([in, &action] { action = [in] { return run_complete(in->word); }; });

  CLI::App& man = *command(app, "__man", "Write the manual pages", "  berth __man DIR");
  man.add_option("DIR", in->word, "where to")->required()->type_name("");
  man.group("");
  man.callback([in, &app, &action] { action = [in, &app] { return write_pages(app, in->word); }; });
}

}  // namespace berth::cli
