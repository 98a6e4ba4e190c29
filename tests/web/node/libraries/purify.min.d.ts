// It leaves a global, and exports nothing.

export {};
