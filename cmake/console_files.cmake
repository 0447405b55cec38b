# berth_console_files(DIRECTORY OUTPUT): a source file that holds all files of a directory, each also
# compressed where that helps. A directory that is missing or empty gives none. The build notices when
# files come, go or change.

function(berth_console_files directory output)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS RELATIVE ${directory} ${directory}/*)
  get_filename_component(folder ${output} DIRECTORY)
  find_program(GZIP_PROGRAM gzip)
  set(blobs "")
  set(entries "")
  set(number 0)
  set(contents "")
  foreach(file IN LISTS files)
    if(file MATCHES "\\.map$")
      continue()  # for whoever develops the console
    endif()
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${directory}/${file})
    list(APPEND contents ${directory}/${file})
    file(SHA256 ${directory}/${file} hash)
    string(SUBSTRING ${hash} 0 24 tag)
    set(symbol berth_console_${number})
    string(APPEND blobs "BLOB(${symbol}, \"${directory}/${file}\")\n")
    set(compressed "{}")
    if(GZIP_PROGRAM AND file MATCHES "\\.(html|js|mjs|css|json|webmanifest|svg|txt|wasm|ico)$")
      set(packed ${folder}/packed/${tag}.gz)
      if(NOT EXISTS ${packed})
        file(MAKE_DIRECTORY ${folder}/packed)
        execute_process(COMMAND ${GZIP_PROGRAM} -9 -n -c ${directory}/${file}
          OUTPUT_FILE ${packed} COMMAND_ERROR_IS_FATAL ANY)
      endif()
      string(APPEND blobs "BLOB(${symbol}_gz, \"${packed}\")\n")
      set(compressed "view(${symbol}_gz, ${symbol}_gz_end)")
    endif()
    string(APPEND entries
      "      {\"${file}\", view(${symbol}, ${symbol}_end), ${compressed}, \"${tag}\"},\n")
    math(EXPR number "${number} + 1")
  endforeach()
  if(number EQUAL 0)
    message(STATUS "There is no console in ${directory}: berthd will say so at /ui")
  endif()
  file(CONFIGURE OUTPUT ${output} @ONLY CONTENT [=[
// Made by cmake/console_files.cmake.
#include "console/console.hpp"

#include <vector>

// NOLINTBEGIN
#define BLOB(name, file)                                          \
  asm(".section .rodata\n.balign 16\n.global " #name "\n" #name   \
      ":\n.incbin \"" file "\"\n.global " #name "_end\n" #name    \
      "_end:\n.byte 0\n.previous\n");                             \
  extern "C" {                                                    \
  extern const char name[];                                       \
  extern const char name##_end[];                                 \
  }

@blobs@
// NOLINTEND

namespace berth {
namespace {

[[maybe_unused]] std::string_view view(const char* begin, const char* end) {
  return {begin, static_cast<std::size_t>(end - begin)};
}

}  // namespace

std::span<const ConsoleFile> console_files() {
  static const std::vector<ConsoleFile> files = {
@entries@  };
  return files;
}

}  // namespace berth
]=])
  set_source_files_properties(${output} PROPERTIES OBJECT_DEPENDS "${contents}")
endfunction()
