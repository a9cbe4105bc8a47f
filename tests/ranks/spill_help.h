#pragma once

#include <dirent.h>
#include <rota/rota.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/ranks/session_help.h"

// What tests share whose values do not fit in the store.
namespace rota::tests {

constexpr std::size_t mebi = std::size_t{1} << 20;

// Bytes that tell one value from another, and each place in it from others.
inline std::uint32_t word_of(std::uint32_t seed, std::size_t i) {
  return (seed * 2654435761u) ^ static_cast<std::uint32_t>(i * 40503u);
}
inline array<std::uint32_t> made(std::size_t bytes, std::uint32_t seed) {
  auto words = make_array<std::uint32_t>(bytes / 4);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = word_of(seed, i);
  return words;
}
inline bool is(const array<std::uint32_t>& words, std::uint32_t seed) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] != word_of(seed, i)) return false;
  }
  return true;
}

using refs = std::vector<ref<array<std::uint32_t>>>;
inline refs put_many(std::size_t count, std::size_t bytes) {
  refs kept;
  for (std::size_t i = 0; i < count; ++i) kept.push_back(put(made(bytes, static_cast<std::uint32_t>(i))));
  return kept;
}

// The files to which this process has spilled: they have no name but the kernel's, as "/tmp/#1234 (deleted)".
inline std::vector<std::string> spill_files() {
  std::vector<std::string> found;
  DIR* descriptors = opendir("/proc/self/fd");
  for (const dirent* d; (d = readdir(descriptors)) != nullptr;) {
    const std::string path = std::string("/proc/self/fd/") + d->d_name;
    std::array<char, 4096> target{};
    const ssize_t length = readlink(path.c_str(), target.data(), target.size());
    const std::string to(target.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
    if (contains(to, "/#") && contains(to, "(deleted)") && !to.starts_with("/dev/shm")) found.push_back(path);
  }
  closedir(descriptors);
  return found;
}

}  // namespace rota::tests
