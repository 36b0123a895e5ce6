//! `counterfoil mcp`: the real binary over pipes, with messages as clients write them.

mod client;
mod frames;
mod people;
mod results;
mod tools;
