#include "runtime/client/settings.h"

#include <gtest/gtest.h>
#include <rota/error.h>

#include <limits>
#include <map>
#include <string>
#include <vector>

namespace {

using rota::config;
using rota::detail::settings;

// A command line and an environment, and what is left of the former.
struct command {
  std::vector<std::string> words;
  std::map<std::string, std::string> environment{};

  settings resolve(const config& base = {}) {
    std::vector<char*> pointers{const_cast<char*>("app")};
    for (std::string& word : words) pointers.push_back(word.data());
    int argc = static_cast<int>(pointers.size());
    pointers.push_back(nullptr);
    char** argv = pointers.data();
    const auto report = [&] {
      left.assign(argv + 1, argv + argc);
      terminated = argv[argc] == nullptr;
    };
    try {
      const settings out = rota::detail::resolve(argc, argv, base, [&](const char* name) -> const char* {
        const auto found = environment.find(name);
        return found == environment.end() ? nullptr : found->second.c_str();
      });
      report();
      return out;
    } catch (...) {
      report();
      throw;
    }
  }

  std::string refusal(const config& base = {}) {
    try {
      resolve(base);
    } catch (const rota::config_error& error) {
      return error.what();
    }
    return "accepted";
  }

  std::vector<std::string> left{};
  bool terminated = false;
};

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(settings, takes_both_spellings_out_of_argv_and_keeps_the_rest_in_order) {
  command c{{"in.txt", "--rota-cpus=4", "-k", "21", "--rota-head-slots", "-1", "out.txt", "--rota"}};
  const config values = c.resolve().values;
  EXPECT_EQ(values.cpus, 4);
  EXPECT_EQ(values.head_slots, -1);
  EXPECT_EQ(c.left, (std::vector<std::string>{"in.txt", "-k", "21", "out.txt", "--rota"}));
  EXPECT_TRUE(c.terminated);
}

TEST(settings, leaves_everything_behind_a_double_dash) {
  command c{{"--rota-cpus=2", "--", "--rota-cpus=3", "--rota-unknown"}};
  EXPECT_EQ(c.resolve().values.cpus, 2);
  EXPECT_EQ(c.left, (std::vector<std::string>{"--", "--rota-cpus=3", "--rota-unknown"}));
}

TEST(settings, flag_beats_environment_beats_config_beats_default) {
  config base;
  base.cpus = 1;
  base.memory = 10;
  base.head_slots = 7;
  command c{{"--rota-cpus=3"}, {{"ROTA_CPUS", "not even a number"}, {"ROTA_MEMORY", "20"}, {"ROTA_HEAD_SLOTS", ""}}};
  const config values = c.resolve(base).values;
  EXPECT_EQ(values.cpus, 3);
  EXPECT_EQ(values.memory, 20u);
  EXPECT_EQ(values.head_slots, 7);
  EXPECT_EQ(values.inline_bytes, 4096u);
}

TEST(settings, every_setting_has_flag_and_variable) {
  const std::map<std::string, std::string> environment = {{"ROTA_CPUS", "2.5"},
                                                          {"ROTA_HEAD_SLOTS", "1"},
                                                          {"ROTA_MEMORY", "3G"},
                                                          {"ROTA_STORE", "64M"},
                                                          {"ROTA_SPILL_DIR", "/scratch"},
                                                          {"ROTA_SPILL_QUOTA", "5G"},
                                                          {"ROTA_STORE_PATIENCE", "2m"},
                                                          {"ROTA_INLINE_BYTES", "1k"},
                                                          {"ROTA_SHUTDOWN_TIMEOUT", "1500ms"},
                                                          {"ROTA_RESOURCES", "ssd:2,licence:0.5"},
                                                          {"ROTA_LOG", "debug"}};
  std::vector<std::string> flags;
  for (const auto& [variable, value] : environment) {
    std::string flag = "--rota-";
    for (const char letter : variable.substr(5)) {
      flag += letter == '_' ? '-' : static_cast<char>(letter | 0x20);
    }
    flags.push_back(flag + "=" + value);
  }
  for (const config& values : {command{{}, environment}.resolve().values, command{flags}.resolve().values}) {
    EXPECT_EQ(values.cpus, 2.5);
    EXPECT_EQ(values.head_slots, 1);
    EXPECT_EQ(values.memory, std::size_t{3} << 30);
    EXPECT_EQ(values.store, std::size_t{64} << 20);
    EXPECT_EQ(values.spill_dir, "/scratch");
    EXPECT_EQ(values.spill_quota, std::size_t{5} << 30);
    EXPECT_EQ(values.store_patience, std::chrono::minutes(2));
    EXPECT_EQ(values.inline_bytes, 1024u);
    EXPECT_EQ(values.shutdown_timeout, std::chrono::milliseconds(1500));
    EXPECT_EQ(values.resources, (std::map<std::string, double>{{"licence", 0.5}, {"ssd", 2}}));
    EXPECT_EQ(values.log, "debug");
  }
}

TEST(settings, an_unknown_flag_is_refused_with_the_known_ones_and_the_nearest) {
  command c{{"a", "--rota-cpu=4"}};
  const std::string message = c.refusal();
  EXPECT_TRUE(contains(message, "unknown flag --rota-cpu")) << message;
  EXPECT_TRUE(contains(message, "did you mean --rota-cpus?")) << message;
  EXPECT_TRUE(contains(message, "--rota-shutdown-timeout")) << message;
  EXPECT_EQ(c.left, (std::vector<std::string>{"a", "--rota-cpu=4"}));
  EXPECT_FALSE(contains(command{{"--rota-bananas=4"}}.refusal(), "did you mean"));
}

TEST(settings, unknown_variables_are_left_alone) {
  EXPECT_EQ((command{{}, {{"ROTA_BANANAS", "x"}}}.refusal()), "accepted");
}

TEST(settings, auto_lets_the_runtime_choose_where_and_how_much_it_spills) {
  config own;
  own.spill_dir = "/scratch";
  own.spill_quota = 7;
  const config values = command{{"--rota-spill-dir=auto", "--rota-spill-quota=auto"}}.resolve(own).values;
  EXPECT_EQ(values.spill_dir, "");
  EXPECT_EQ(values.spill_quota, config::half_of_disk);
  EXPECT_EQ((command{{"--rota-spill-quota=0"}}.resolve().values.spill_quota), 0u);
}

TEST(settings, a_refusal_names_source_value_and_what_is_accepted) {
  const std::string of_flag = command{{"--rota-store=12X"}}.refusal();
  EXPECT_TRUE(contains(of_flag, "--rota-store: '12X'") && contains(of_flag, "powers of 1024")) << of_flag;
  const std::string of_variable = command{{}, {{"ROTA_LOG", "loud"}}}.refusal();
  EXPECT_TRUE(contains(of_variable, "ROTA_LOG: 'loud'") && contains(of_variable, "trace, debug")) << of_variable;
  config base;
  base.inline_bytes = 8;
  EXPECT_TRUE(contains(command{{}}.refusal(base), "inline_bytes")) << command{{}}.refusal(base);
}

TEST(settings, bad_values_are_refused) {
  for (const char* flag : {"--rota-cpus=-1",
                           "--rota-cpus=nan",
                           "--rota-cpus=inf",
                           "--rota-cpus=1e9",
                           "--rota-cpus=",
                           "--rota-cpus=4 ",
                           "--rota-head-slots=-2",
                           "--rota-head-slots=1.5",
                           "--rota-memory=-1",
                           "--rota-memory=99999999999T",
                           "--rota-memory=K",
                           "--rota-inline-bytes=63",
                           "--rota-inline-bytes=1M",
                           "--rota-store=18446744073709551615",
                           "--rota-spill-quota=half",
                           "--rota-spill-quota=-1",
                           "--rota-store-patience=-1s",
                           "--rota-shutdown-timeout=-1s",
                           "--rota-shutdown-timeout=nans",
                           "--rota-shutdown-timeout=5h",
                           "--rota-resources=a",
                           "--rota-resources=:1",
                           "--rota-resources=a:-1",
                           "--rota-resources=a:nan",
                           "--rota-resources=a:1,a:2",
                           "--rota-resources=a:1,",
                           "--rota-resources=,a:1",
                           "--rota-resources=cpus:1",
                           "--rota-resources=a:1,memory:5",
                           "--rota-resources=gpus:1",
                           "--rota-resources=a:1e300",
                           "--rota-log=WARN"}) {
    const std::string message = command{{flag}}.refusal();
    EXPECT_TRUE(contains(message, "is not accepted")) << flag << ": " << message;
  }
}

TEST(settings, bad_values_in_the_programs_own_config_are_refused) {
  std::vector<config> bad(6);
  bad[0].cpus = std::numeric_limits<double>::quiet_NaN();
  bad[1].resources["a"] = -1;
  bad[2].resources[""] = 1;
  bad[3].log = "loud";
  bad[4].resources["memory"] = 1;
  bad[5].resources["a"] = 1e16;
  for (const config& base : bad) EXPECT_NE(command{{}}.refusal(base), "accepted");
}

TEST(settings, resources_with_a_setting_of_their_own_are_refused_with_its_name) {
  const std::string memory = command{{"--rota-resources=memory:5"}}.refusal();
  EXPECT_TRUE(contains(memory, "--rota-memory")) << memory;
}

TEST(settings, a_flag_without_its_value_is_refused) {
  EXPECT_TRUE(contains(command{{"--rota-cpus"}}.refusal(), "--rota-cpus has no value"));
  EXPECT_TRUE(contains(command{{"--rota-cpus", "--rota-log=off"}}.refusal(), "--rota-cpus has no value"));
}

TEST(settings, the_last_of_equal_flags_counts) {
  EXPECT_EQ((command{{"--rota-cpus=1", "--rota-cpus=2"}}.resolve().values.cpus), 2);
}

TEST(settings, the_store_is_rounded_up_to_whole_extents) {
  EXPECT_EQ((command{{"--rota-store=1"}}.resolve().values.store), rota::detail::store_granule);
  EXPECT_EQ((command{{"--rota-store=0"}}.resolve().values.store), 0u);
}

TEST(settings, help_is_returned_and_taken_out) {
  command c{{"--rota-help", "x"}, {{"ROTA_CPUS", "bad"}}};
  const settings out = c.resolve();
  ASSERT_TRUE(out.help.has_value());
  EXPECT_TRUE(contains(*out.help, "--rota-cpus, ROTA_CPUS"));
  EXPECT_EQ(c.left, std::vector<std::string>{"x"});
  EXPECT_FALSE((command{{}}.resolve().help.has_value()));
}

TEST(settings, no_arguments_at_all_are_fine) {
  int argc = 0;
  char** argv = nullptr;
  EXPECT_EQ(rota::detail::resolve(argc, argv, {}, [](const char*) { return nullptr; }).values.inline_bytes, 4096u);
}

std::string shown(const settings& all, const std::string& name) {
  for (const auto& one : all.shown) {
    if (one.name == name) return one.value + " from " + one.from;
  }
  return "absent";
}

TEST(settings, are_shown_with_who_set_them) {
  config base;
  base.cpus = 2;
  base.memory = 10;
  command c{{"--rota-store=3M", "--rota-lost-after", "1500ms", "--rota-resources=b:2,a:0.5"},
            {{"ROTA_MEMORY", "2G"}, {"ROTA_STORE", "1G"}, {"ROTA_LOG", ""}}};
  const settings all = c.resolve(base);
  EXPECT_EQ(shown(all, "cpus"), "2 from program");
  EXPECT_EQ(shown(all, "memory"), "2G from ROTA_MEMORY");
  EXPECT_EQ(shown(all, "store"), "4M from flag");  // in granules
  EXPECT_EQ(shown(all, "lost-after"), "1.5s from flag");
  EXPECT_EQ(shown(all, "suspect-after"), "5s from default");
  EXPECT_EQ(shown(all, "resources"), "a:0.5,b:2 from flag");
  EXPECT_EQ(shown(all, "log"), "warn from default");
}

TEST(settings, all_are_shown_in_words_that_their_flags_take) {
  const settings all = command{}.resolve();
  EXPECT_GE(all.shown.size(), 11u);
  for (const auto& one : all.shown) {
    if (one.name == "resources") continue;  // nothing, which no flag says
    ASSERT_NE(one.value, "") << one.name;
    const settings again = command{{"--rota-" + one.name + "=" + one.value}}.resolve();
    EXPECT_EQ(shown(again, one.name), one.value + " from flag");
  }
}

}  // namespace
