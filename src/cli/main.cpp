#include "cli/application.h"

int main(int argc, char** argv) { return coterie::cli::run_application(argc, argv); }
