#include "kernels/cpu/matmul/matmul.h"
#include "kernels/cpu/quantise_activation_simd.h"

namespace coterie::cpu {

QuantiseActivationFunction quantise_activation_for(InstructionSet set) {
    switch (set) {
        case InstructionSet::Scalar:
            return coterie::quantise_activation;
        case InstructionSet::Avx2:
        case InstructionSet::Avx512:
            // Quantising is a thousandth of a product's work; a second version for wider vectors would not
            // pay.
            return matmul::avx2::quantise_activation;
    }
    return nullptr;
}

}  // namespace coterie::cpu
