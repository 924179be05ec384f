#pragma once

#include "base/split_mix.h"

namespace coterie::synth {

/// Functions that give the same bits on every machine, which the system's library does not promise:
/// additions, multiplications and divisions only. Good to about 1e-15; for positive finite arguments.

double natural_log(double x);
double exponential(double x);

/// base^exponent.
double power(double base, double exponent);

/// A draw from a bell curve of mean 0 and variance 1: the sum of twelve uniform numbers, so never beyond 6.
float bell_draw(SplitMix64& random);

}  // namespace coterie::synth
