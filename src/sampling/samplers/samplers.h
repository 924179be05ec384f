#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "sampling/sampler.h"

/// Every sampler, each defined in a file of its own name. Windows count tokens back from the end of the
/// sequence: 0 switches the sampler off, -1 is the whole sequence.
namespace coterie {

struct TokenBias {
    std::int32_t token;
    float bias;
};

/// Adds a constant to the logits of some tokens; -infinity forbids a token. Throws InvalidArgument for a
/// token outside the vocabulary, for NaN and +infinity, and when no token is left.
class LogitBias final : public Sampler {
  public:
    LogitBias(std::vector<TokenBias> biases, std::int64_t vocabulary);
    /// Requires: the candidates are as loaded.
    void apply(Candidates& candidates, Random& random) override;

    /// Whose logits change, ascending.
    std::span<const std::int32_t> tokens() const { return tokens_; }

  private:
    std::vector<TokenBias> biases_;  ///< by token, each once
    std::vector<std::int32_t> tokens_;
};

/// Lowers tokens of the window: a positive logit is divided by `repeat`, another one multiplied (Keskar et
/// al. 2019), then `frequency` times the token's count and `presence` once are taken off.
class Penalties final : public Sampler {
  public:
    Penalties(std::int64_t vocabulary, std::int64_t window, float repeat, float frequency, float presence);
    void apply(Candidates& candidates, Random& random) override;
    void accept(std::int32_t token) override;

  private:
    std::int64_t window_;
    float repeat_;
    float frequency_;
    float presence_;
    std::vector<std::int32_t> recent_;  ///< ring of `window_` tokens; unused for the whole sequence
    std::size_t oldest_ = 0;
    std::vector<std::uint32_t> counts_;  ///< per token, within the window
};

/// "Don't repeat yourself": where the last L tokens stood before in the window, followed by token t, t's
/// logit is lowered by multiplier * base^(L - allowed_length) for the longest such L >= allowed_length. A
/// repetition never reaches across a breaker token, and breakers are not lowered.
class Dry final : public Sampler {
  public:
    Dry(float multiplier, float base, std::int64_t allowed_length, std::int64_t window,
        std::vector<std::int32_t> breakers);
    void apply(Candidates& candidates, Random& random) override;
    void accept(std::int32_t token) override;

  private:
    struct Continuation {
        std::int32_t token;
        std::int64_t length;
    };

    bool is_breaker(std::int32_t token) const;
    void find_repeats(std::span<const std::int32_t> tokens, std::int64_t longest);
    void find_continuations();

    float multiplier_;
    float base_;
    std::int64_t allowed_length_;
    std::int64_t window_;
    std::vector<std::int32_t> breakers_;  ///< sorted
    std::vector<std::int32_t> history_;   ///< the whole sequence
    std::vector<std::int64_t>
        repeats_;  ///< [i]: how many tokens before history's end - i equal those at its end
    std::vector<Continuation> continuations_;  ///< by token, each once
};

/// Keeps logits within `n` standard deviations of the highest (top-n-sigma, Tang et al. 2024).
class TopNSigma final : public Sampler {
  public:
    explicit TopNSigma(float n) : n_(n) {}
    void apply(Candidates& candidates, Random& random) override;

  private:
    float n_;
};

/// Keeps the k most probable.
class TopK final : public Sampler {
  public:
    explicit TopK(std::int64_t k) : k_(k) {}
    void apply(Candidates& candidates, Random& random) override;

  private:
    std::int64_t k_;
};

/// Keeps the smallest set of probability p whose information content lies nearest to the entropy (Meister et
/// al. 2022).
class Typical final : public Sampler {
  public:
    explicit Typical(float p) : p_(p) {}
    void apply(Candidates& candidates, Random& random) override;

  private:
    float p_;
};

/// Keeps the smallest set of the most probable whose probability reaches p (nucleus, Holtzman et al. 2020).
class TopP final : public Sampler {
  public:
    explicit TopP(float p) : p_(p) {}
    void apply(Candidates& candidates, Random& random) override;

  private:
    float p_;
};

/// Keeps what has at least p times the highest probability (Nguyen et al. 2024).
class MinP final : public Sampler {
  public:
    explicit MinP(float p) : p_(p) {}
    void apply(Candidates& candidates, Random& random) override;

  private:
    float p_;
};

/// "Exclude top choices": with a chance of `probability`, where at least two candidates reach `threshold`,
/// removes all of these but the least probable.
class Xtc final : public Sampler {
  public:
    Xtc(float probability, float threshold) : probability_(probability), threshold_(threshold) {}
    void apply(Candidates& candidates, Random& random) override;

  private:
    float probability_;
    float threshold_;
};

/// Divides logits by the temperature. With a range, the temperature lies between `temperature - range` (at
/// least 0) and `temperature + range`, by the share of the greatest possible entropy to the power `exponent`
/// (dynamic temperature).
class Temperature final : public Sampler {
  public:
    explicit Temperature(float temperature, float range = 0, float exponent = 1)
        : temperature_(temperature), range_(range), exponent_(exponent) {}
    void apply(Candidates& candidates, Random& random) override;

  private:
    float dynamic_temperature(Candidates& candidates) const;

    float temperature_;
    float range_;
    float exponent_;
};

/// Steers the surprise -log2 p of the drawn tokens to `tau` (Basu et al. 2021): after each draw the bound mu,
/// 2 tau at first, falls by eta times the excess of the surprise over tau. The surprise counts before the
/// truncation.
class Mirostat : public Sampler {
  public:
    Mirostat(float tau, float eta) : tau_(tau), eta_(eta), mu_(2 * tau) {}
    void apply(Candidates& candidates, Random& random) override;
    void observe_draw(double probability) override;
    double mu() const { return mu_; }

  protected:
    /// How many of the ranked candidates, whose probabilities are current, stay.
    virtual std::size_t kept(Candidates& candidates) const = 0;

  private:
    double tau_;
    double eta_;
    double mu_;
    double kept_probability_ = 1;
};

/// Version 1: keeps the k most probable, with k from mu and a Zipf exponent fitted to the 100 most probable.
class MirostatV1 final : public Mirostat {
  public:
    using Mirostat::Mirostat;

  private:
    std::size_t kept(Candidates& candidates) const override;
};

/// Version 2: keeps what has a surprise of at most mu.
class MirostatV2 final : public Mirostat {
  public:
    using Mirostat::Mirostat;

  private:
    std::size_t kept(Candidates& candidates) const override;
};

}  // namespace coterie
