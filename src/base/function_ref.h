#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace coterie {

template <typename Signature>
class FunctionRef;

/// A borrowed callable: two words, no allocation. It must not outlive what it was made from.
template <typename Result, typename... Args>
class FunctionRef<Result(Args...)> {
  public:
    template <typename F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef>) FunctionRef(
        F&& function)  // NOLINT(google-explicit-constructor): made at call sites, like string_view
        : object_(const_cast<void*>(static_cast<const void*>(std::addressof(function)))),
          call_([](void* object, Args... args) -> Result {
              return (*static_cast<std::remove_reference_t<F>*>(object))(std::forward<Args>(args)...);
          }) {}

    Result operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

  private:
    void* object_;
    Result (*call_)(void*, Args...);
};

}  // namespace coterie
