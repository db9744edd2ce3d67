// SPDX-License-Identifier: Apache-2.0
//
// Has no tests: the target of this file owns the precompiled headers of all
// programs that do.
