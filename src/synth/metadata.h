#pragma once

#include <cstdint>

#include "gguf/writer.h"
#include "synth/quant_mix.h"
#include "synth/shape.h"

namespace coterie::synth {

/// Sets the keys that the real model's file has: sizes, rope, routing. `layers` counts the trunk.
void set_model_keys(gguf::Header& header, const Shape& shape, std::int64_t layers, const QuantMix& mix);

/// Sets `tokenizer.ggml.*`: a byte-level vocabulary of `shape.vocabulary` tokens in which every text round
/// trips. Ids 0 to 255 are the bytes; the others are made-up words of one to three syllables (" bamiko"),
/// each the merge of two earlier tokens, so that such a word is one token and generated text is readable;
/// special tokens stand at the ids of the real model.
void set_vocabulary_keys(gguf::Header& header, const Shape& shape);

}  // namespace coterie::synth
