#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace rota {

// Root of everything that rota throws. what() says what happened, where (rank, host, task) and what to do.
class error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The function of a task or the method of an actor threw, or the constructor of an actor did. Dependents of the task
// fail with the same error without running.
class task_error : public error {
 public:
  // `what`: whole message. `original`: the message of what was thrown. `kind`: a detail::thrown_kind.
  task_error(const std::string& what, std::string type_name, std::string original, std::uint8_t kind)
      : error(what), type_name_(std::move(type_name)), original_(std::move(original)), kind_(kind) {}

  // Type of what was thrown, as in the source ("std::out_of_range").
  const std::string& type_name() const noexcept { return type_name_; }

  // Throws the original type again, with its original message, where it was a standard exception; else *this.
  [[noreturn]] void rethrow() const;

 private:
  std::string type_name_;
  std::string original_;
  std::uint8_t kind_;
};

// The task was dropped before it ran, at the end of the session.
class task_cancelled : public error {
 public:
  using error::error;
};

// The task outran its timeout. Nothing throws it yet: tasks have no timeout in this version.
class task_timeout : public error {
 public:
  using error::error;
};

// The value was not there in time. The task goes on, and a later get may still succeed.
class get_timeout : public error {
 public:
  using error::error;
};

// The actor is gone for good; what() says why.
class actor_died : public error {
 public:
  using error::error;
};

// The call was in flight when the actor's rank was lost: it may or may not have run.
class actor_unavailable : public error {
 public:
  using error::error;
};

// The rank that ran the task died.
class rank_lost : public error {
 public:
  using error::error;
};

// No copy of the object is left, or none can be read from the node that wants it, and it cannot be rebuilt.
class object_lost : public error {
 public:
  using error::error;
};

// The store is full, or the node has no room for it at the start. It works again once refs have been let go.
class out_of_memory : public error {
 public:
  using error::error;
};

// No present or possible rank could ever run it.
class infeasible : public error {
 public:
  using error::error;
};

// A call that would have to wait, thrown at the call. Nothing throws it yet: actors take any number of calls.
class would_block : public error {
 public:
  using error::error;
};

// Wrong use or wrong settings: bad options, an empty ref, a call outside the session, flags that are not known.
class config_error : public error {
 public:
  using error::error;
};

// A rank may not join: it runs another executable than rank 0.
class join_refused : public error {
 public:
  using error::error;
};

}  // namespace rota
