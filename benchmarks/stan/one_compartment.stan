// A dose by mouth, absorbed and eliminated: concentrations with log-normal error.
functions {
  vector field(real t, vector x, real ka, real ke, real V) {
    return [-ka * x[1], ka * x[1] / V - ke * x[2]]';
  }
}
data {
  int n;
  array[n] real times;
  vector[n] y;
}
parameters {
  real<lower=0> ka;
  real<lower=0> ke;
  real<lower=0> V;
  real<lower=0> s;
}
model {
  array[n] vector[2] x = ode_rk45(field, [100, 0]', 0, times, ka, ke, V);
  ka ~ lognormal(0, 1);
  ke ~ lognormal(-2, 1);
  V ~ lognormal(3, 1);
  s ~ lognormal(-2, 1);
  for (i in 1 : n) y[i] ~ lognormal(log(fmax(x[i, 2], 1e-12)), s);
}
