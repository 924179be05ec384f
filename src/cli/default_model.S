# The built-in model's bytes, read-only, aligned for SIMD loads.
    .section .rodata
    .balign 64
    .global coterie_default_model_begin
    .global coterie_default_model_end
coterie_default_model_begin:
    .incbin COTERIE_DEFAULT_MODEL
coterie_default_model_end:
    .byte 0
    .section .note.GNU-stack, "", %progbits
