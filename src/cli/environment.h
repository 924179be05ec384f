#pragma once

/// Every environment variable that the program reads. Each mirrors a flag, and a flag given wins.
namespace coterie::cli::environment {

inline constexpr const char* kModel = "COTERIE_MODEL";             ///< -m
inline constexpr const char* kThreads = "COTERIE_THREADS";         ///< -t
inline constexpr const char* kContext = "COTERIE_CTX_SIZE";        ///< -c
inline constexpr const char* kInstructionSet = "COTERIE_CPU_ISA";  ///< --cpu-isa
inline constexpr const char* kPython = "COTERIE_PYTHON";           ///< --python

}  // namespace coterie::cli::environment
