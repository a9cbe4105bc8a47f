#include "mpi/devices.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace {

namespace fs = std::filesystem;
using rota::mpi::is_inner_bridge;

// A folder like /sys/class/net; it goes with the test.
class devices : public testing::Test {
 protected:
  devices() : net(fs::temp_directory_path() / ("rota-net-" + std::to_string(getpid()))) { fs::create_directories(net); }
  ~devices() override { fs::remove_all(net); }
  void have(const std::string& path) { fs::create_directories(net / path); }

  fs::path net;
};

TEST_F(devices, a_network_card_is_no_bridge) {
  have("eth0/device");
  EXPECT_FALSE(is_inner_bridge(net / "eth0"));
  EXPECT_FALSE(is_inner_bridge(net / "absent"));
}

TEST_F(devices, a_bridge_of_containers_is_an_inner_one) {
  have("docker0/bridge");
  EXPECT_TRUE(is_inner_bridge(net / "docker0"));
  have("veth1");
  have("docker0/brif/veth1");
  EXPECT_TRUE(is_inner_bridge(net / "docker0"));
}

TEST_F(devices, a_bridge_that_leads_out_is_a_network) {
  for (const char* below : {"eth0/device", "bond0/lower_eth0", "eth0.7/lower_eth0"}) {
    const std::string port = fs::path(below).parent_path().string();
    have("br-" + port + "/bridge");
    have("br-" + port + "/brif/" + port);
    have("br-" + port + "/brif/tap0");
    have("tap0");
    have(below);
    EXPECT_FALSE(is_inner_bridge(net / ("br-" + port))) << below;
  }
}

TEST(addresses, with_a_label_of_their_own_belong_to_the_device) {
  for (const char* label : {"eth0", "eth0:1", "eth0:data"}) EXPECT_EQ(rota::mpi::device_of(label), "eth0");
  EXPECT_EQ(rota::mpi::device_of("eth0.7:1"), "eth0.7");
}

TEST(mpi_and_bridges, what_somebody_said_holds) {
  for (const char* variable : {"OMPI_MCA_btl_tcp_if_include", "OMPI_MCA_btl_tcp_if_exclude"}) {
    setenv(variable, "eth7", 1);
    rota::mpi::keep_mpi_off_inner_bridges();
    EXPECT_STREQ(getenv(variable), "eth7");
    unsetenv(variable);
  }
}

}  // namespace
