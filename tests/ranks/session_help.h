#pragma once

#include <rota/rota.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

// What the tests of the runtime share.
namespace rota::tests {

// What every rank of this test offers, whatever the user's environment says. For the initialiser of a global: init
// reads the environment.
inline bool offer(std::initializer_list<std::pair<const char*, const char*>> settings) {
  for (const char* name : {"ROTA_CPUS", "ROTA_STORE", "ROTA_RESOURCES", "ROTA_MEMORY", "ROTA_HEAD_SLOTS",
                           "ROTA_INLINE_BYTES", "ROTA_SPILL_DIR", "ROTA_SPILL_QUOTA", "ROTA_STORE_PATIENCE"}) {
    unsetenv(name);
  }
  for (const auto& [name, value] : settings) setenv(name, value, 1);
  return true;
}

// The ranks that run tasks: all but the head, which does so only when it is alone.
inline std::vector<unsigned> workers() {
  std::vector<unsigned> found;
  for (const node_info& node : nodes()) found.insert(found.end(), node.ranks.begin(), node.ranks.end());
  if (found.size() > 1) std::erase(found, 0u);
  return found;
}

// Looks until `holds()` is true; false after 20 s.
template <class F>
bool eventually(F holds) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

inline bool exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

// For a task that must keep its slot while it waits, which it would give back in get().
inline void hold_slot_until(const std::string& path) {
  if (!eventually([&] { return exists(path); })) throw std::runtime_error("nobody made " + path);
}

// A folder of a test's own, with files by which processes tell each other something: in $TMPDIR, which all nodes see
// when a test runs on several.
class note_folder {
 public:
  note_folder() {
    const char* parent = std::getenv("TMPDIR");
    std::string name = std::string(parent ? parent : "/tmp") + "/rota_test_XXXXXX";
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    path_ = name;
  }
  note_folder(const note_folder&) = delete;
  note_folder& operator=(const note_folder&) = delete;
  ~note_folder() {
    for (const std::string& name : names_) unlink(file(name).c_str());
    rmdir(path_.c_str());
  }

  // The path of a file, which is removed at the end.
  std::string operator[](const std::string& name) {
    names_.push_back(name);
    return file(name);
  }

 private:
  std::string file(const std::string& name) const { return path_ + "/" + name; }

  std::string path_;
  std::vector<std::string> names_;
};

inline void write_note(const std::string& path, const std::string& text = "here") { std::ofstream(path) << text; }

inline std::string read_note(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Runs `call`, which must throw an Error, and gives it back.
template <class Error, class F>
Error thrown_by(F call) {
  try {
    call();
  } catch (const Error& e) {
    return e;
  }
  throw std::logic_error("nothing was thrown");
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace rota::tests
