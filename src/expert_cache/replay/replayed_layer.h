#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "expert_cache/policy/policy.h"

namespace coterie::expert_cache {

/// The slots of one layer in a replay, as its policy fills them. Who has to go for an upload is decided when
/// it starts; until it lands the victim stays and serves, and the upload has a spare slot.
class ReplayedLayer {
  public:
    ReplayedLayer(std::unique_ptr<Policy> policy, std::int32_t experts, std::int32_t slots);

    /// Fills the slots with what the policy finds worth most, before the first token.
    void fill();

    /// A token uses the expert; whether it is resident.
    bool use(std::int32_t expert, std::int64_t token);

    /// Starts the upload of an expert that was just missed, where the policy wants it and finds it a slot.
    bool start_upload(std::int32_t expert, std::int64_t token);
    /// Requires: it was started.
    void upload_landed(std::int32_t expert, std::int64_t token);

  private:
    static constexpr std::int32_t kNone = -1;
    struct Expert {
        bool resident = false;
        bool uploading = false;
        std::int32_t place = kNone;   ///< in candidates_
        std::int32_t victim = kNone;  ///< of its upload
    };

    Expert& state(std::int32_t expert) { return experts_[static_cast<std::size_t>(expert)]; }
    bool full() const { return static_cast<std::int32_t>(candidates_.size()) + uploads_ >= slots_; }
    void enter(std::int32_t expert, std::int64_t token);
    void leave(std::int32_t expert, std::int64_t token);
    void drop_candidate(std::int32_t expert);

    std::unique_ptr<Policy> policy_;
    std::vector<Expert> experts_;
    std::vector<std::int32_t> candidates_;  ///< residents that no upload will replace
    std::int32_t uploads_ = 0;              ///< on their way
    std::int32_t slots_;
};

}  // namespace coterie::expert_cache
