#include "apps/rota-bench/raw_ucx.h"

#include <ucp/api/ucp.h>

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "runtime/base/clock.h"

namespace bench {
namespace {

constexpr unsigned word_id = 0, bulk_id = 1;

void check(ucs_status_t status, const char* call) {
  if (status != UCS_OK) throw std::runtime_error(std::string(call) + ": " + ucs_status_string(status));
}

class ucx_pair final : public raw_ucx {
 public:
  ucx_pair() {
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_AM;
    check(ucp_init(&params, nullptr, &context_), "ucp_init");
    ucp_worker_params_t single{};
    single.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    single.thread_mode = UCS_THREAD_MODE_SINGLE;
    check(ucp_worker_create(context_, &single, &worker_), "ucp_worker_create");
    handle(word_id, [](void* arg, const void*, std::size_t, void*, std::size_t, const ucp_am_recv_param_t*) {
      ++static_cast<ucx_pair*>(arg)->words_;
      return UCS_OK;
    });
    handle(bulk_id, [](void* arg, const void*, std::size_t, void* data, std::size_t size, const ucp_am_recv_param_t*) {
      auto& self = *static_cast<ucx_pair*>(arg);
      ucp_request_param_t param{};
      param.op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
      self.incoming_ = ucp_am_recv_data_nbx(self.worker_, data, self.bytes_.data(), size, &param);
      return UCS_INPROGRESS;
    });
  }
  ucx_pair(const ucx_pair&) = delete;
  ucx_pair& operator=(const ucx_pair&) = delete;
  ~ucx_pair() override {
    if (ep_ != nullptr) {
      ucp_request_param_t force{};
      force.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
      force.flags = UCP_EP_CLOSE_FLAG_FORCE;
      finish(ucp_ep_close_nbx(ep_, &force));
    }
    ucp_worker_destroy(worker_);
    ucp_cleanup(context_);
  }

  std::string address() override {
    ucp_address_t* address = nullptr;
    std::size_t length = 0;
    check(ucp_worker_get_address(worker_, &address, &length), "ucp_worker_get_address");
    std::string bytes(reinterpret_cast<const char*>(address), length);
    ucp_worker_release_address(worker_, address);
    return bytes;
  }

  void connect(const std::string& peer) override {
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
    params.address = reinterpret_cast<const ucp_address_t*>(peer.data());
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    check(ucp_ep_create(worker_, &params, &ep_), "ucp_ep_create");
  }

  double ask(int rounds) override {
    send_word();
    wait_word();
    const std::uint64_t start = rota::base::now_ns();
    for (int i = 0; i < rounds; ++i) {
      send_word();
      wait_word();
    }
    return static_cast<double>(rota::base::now_ns() - start) * 1e-9 / rounds;
  }

  void answer(int rounds) override {
    for (int i = 0; i <= rounds; ++i) {
      wait_word();
      send_word();
    }
  }

  double fetch(std::size_t bytes, int rounds) override {
    bytes_.resize(bytes);
    double seconds = 0;
    for (int i = 0; i <= rounds; ++i) {
      const std::uint64_t start = rota::base::now_ns();
      send_word();
      incoming_ = nullptr;
      while (incoming_ == nullptr) ucp_worker_progress(worker_);
      finish(incoming_);
      if (i > 0) seconds += static_cast<double>(rota::base::now_ns() - start) * 1e-9;
    }
    return seconds / rounds;
  }

  void lend(std::size_t bytes, int rounds) override {
    bytes_.assign(bytes, std::byte{1});
    for (int i = 0; i <= rounds; ++i) {
      wait_word();
      ucp_request_param_t param{};
      param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
      param.flags = UCP_AM_SEND_FLAG_RNDV;
      finish(ucp_am_send_nbx(ep_, bulk_id, nullptr, 0, bytes_.data(), bytes_.size(), &param));
    }
  }

 private:
  void handle(unsigned id, ucp_am_recv_callback_t call) {
    ucp_am_handler_param_t handler{};
    handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
    handler.id = id;
    handler.cb = call;
    handler.arg = this;
    check(ucp_worker_set_am_recv_handler(worker_, &handler), "ucp_worker_set_am_recv_handler");
  }

  void finish(ucs_status_ptr_t request) {
    if (request == nullptr) return;
    if (UCS_PTR_IS_ERR(request)) check(UCS_PTR_STATUS(request), "UCX");
    while (ucp_request_check_status(request) == UCS_INPROGRESS) ucp_worker_progress(worker_);
    check(ucp_request_check_status(request), "UCX");
    ucp_request_free(request);
  }

  void send_word() {
    ucp_request_param_t param{};
    finish(ucp_am_send_nbx(ep_, word_id, nullptr, 0, &word_, sizeof word_, &param));
  }

  void wait_word() {
    ++taken_;
    while (words_ < taken_) ucp_worker_progress(worker_);
  }

  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  ucp_ep_h ep_ = nullptr;
  std::uint64_t word_ = 0, words_ = 0, taken_ = 0;
  ucs_status_ptr_t incoming_ = nullptr;
  std::vector<std::byte> bytes_;
};

}  // namespace

std::unique_ptr<raw_ucx> make_raw_ucx() { return std::make_unique<ucx_pair>(); }

}  // namespace bench
