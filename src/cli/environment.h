#pragma once

/// Every environment variable that the program reads. Those of its own mirror flags, and a flag given wins.
namespace coterie::cli::environment {

inline constexpr const char* kModel = "COTERIE_MODEL";             ///< -m
inline constexpr const char* kThreads = "COTERIE_THREADS";         ///< -t
inline constexpr const char* kContext = "COTERIE_CTX_SIZE";        ///< -c
inline constexpr const char* kInstructionSet = "COTERIE_CPU_ISA";  ///< --cpu-isa
inline constexpr const char* kApiKey = "COTERIE_API_KEY";          ///< --api-key
inline constexpr const char* kPython = "COTERIE_PYTHON";           ///< --python

inline constexpr const char* kCacheFolder =
    "XDG_CACHE_HOME";                         ///< where profiles of routing and machines are kept
inline constexpr const char* kHome = "HOME";  ///< where that folder is by default

}  // namespace coterie::cli::environment
