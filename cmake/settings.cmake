# Compiler settings as INTERFACE targets; every berth target links berth_settings.

option(BERTH_TESTS "Build the tests" ON)
option(BERTH_BENCH "Build the benchmarks" OFF)
option(BERTH_WERROR "Warnings are errors" OFF)
option(BERTH_FUZZ "Build the libFuzzer targets (clang only)" OFF)
set(BERTH_SANITIZE "" CACHE STRING "Sanitizers, as -fsanitize= takes them: address,undefined or thread")

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

add_library(berth_settings INTERFACE)
target_include_directories(berth_settings INTERFACE ${CMAKE_SOURCE_DIR}/src)
target_compile_options(berth_settings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Wold-style-cast -Wcast-qual
  -Wextra-semi -Wimplicit-fallthrough -Werror=return-type -Werror=switch)
target_compile_definitions(berth_settings INTERFACE BERTH_VERSION="${PROJECT_VERSION}")
# GCC 12 sees overlapping copies in "text" + std::string (its bug 105651), and uninitialised members
# in the error half of std::expected.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(berth_settings INTERFACE -Wno-restrict -Wno-maybe-uninitialized)
endif()
if(BERTH_WERROR)
  target_compile_options(berth_settings INTERFACE -Werror)
endif()
if(BERTH_SANITIZE)
  target_compile_options(berth_settings INTERFACE
    -fsanitize=${BERTH_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(berth_settings INTERFACE -fsanitize=${BERTH_SANITIZE})
endif()
# What the fuzzer watches: the libraries, not the tests, where it would only take time.
add_library(berth_watched INTERFACE)
if(BERTH_FUZZ)
  target_compile_options(berth_watched INTERFACE -fsanitize=fuzzer-no-link)
endif()

find_package(fmt REQUIRED)
find_package(Threads REQUIRED)
