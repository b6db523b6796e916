#include "nqf/deck/system.hpp"

#include "nqf/deck/table_reader.hpp"

namespace nqf::deck {

SystemOptions SystemOptions::from(TableReader table) {
  SystemOptions o;
  table.require("kind", o.kind,
                "what is integrated; its table has the same name (module: with data, weights, training)",
                {{"modes", SystemKind::modes},
                 {"diagonal_network", SystemKind::diagonal_network},
                 {"samples", SystemKind::samples},
                 {"single_sample", SystemKind::single_sample},
                 {"module", SystemKind::module}});
  table.finish();
  o.place = table.place("kind");
  return o;
}

ModesOptions ModesOptions::from(TableReader table) {
  ModesOptions o;
  table.read("count", o.count, "number of modes K; needed where every array is a power law or one number", at_least(1));
  table.read_path(
      "file", o.file,
      "HDF5 file with growth_rate and saturation, drop or coupling, or features and targets; and initial or "
      "log_initial");
  table.read("growth_rate", o.growth_rate, "growth rates zeta_k [1/time]");
  table.read("saturation", o.saturation, "uncoupled: final strengths z*_k = zeta_k/C_kk [-]", positive);
  table.read("drop", o.drop, "uncoupled: drops of the loss V_k = zeta_k^2/(8 C_kk) [loss]", positive);
  table.read("coupling", o.coupling, "dense coupling C (K x K), symmetric [1/time]");
  table.read("features", o.features, "features F (N x K): C = 4 F^T diag(weight) F [-]");
  table.read("targets", o.targets, "targets y_n (N) of the features [-]");
  table.read("weight", o.weight, "weights of the N samples, normalised to sum 1; default 1/N [-]", non_negative);
  table.finish();
  o.place = table.place();

  for (const char* array : {"growth_rate", "saturation", "drop", "coupling", "features", "targets", "weight"}) {
    table.at_most_one({"file", array});
  }
  for (const char* array : {"growth_rate", "saturation", "drop", "coupling"}) table.at_most_one({"features", array});
  table.at_most_one({"saturation", "drop", "coupling"});
  for (const char* array : {"saturation", "drop", "coupling"}) table.needs(array, "growth_rate");
  table.needs("features", "targets");
  table.needs("targets", "features");
  table.needs("weight", "features");
  const bool uncoupled = table.given("saturation") || table.given("drop");
  table.require_that(!table.given("growth_rate") || uncoupled || table.given("coupling"), "growth_rate",
                     "needs saturation, drop or coupling beside it");
  table.require_that(table.given("growth_rate") || table.given("features") || table.given("file"), "",
                     "give growth_rate (with saturation, drop or coupling), features (with targets) or file");
  return o;
}

DiagonalNetworkOptions DiagonalNetworkOptions::from(TableReader table) {
  DiagonalNetworkOptions o;
  table.read("signed", o.is_signed,
             "f = sum_k x_k (u_k^2 - v_k^2), twice as many modes as inputs; else sum_k x_k u_k^2");
  table.read_path("images", o.images, "IDX file of images, gzip or plain");
  table.read_path("labels", o.labels, "IDX file of labels, gzip or plain");
  table.read("class", o.target_class, "target is 1 where the label is this one, else 0", at_least(0), at_most(255));
  table.read_path("file", o.file, "HDF5 file with x (N x n) and y (N), instead of images and labels");
  table.read("samples", o.samples, "use the first so many samples; 0: all", non_negative);
  table.read("scale", o.scale, "inputs are multiplied by this; 1/255 makes bytes to 0 … 1", positive);
  table.read("centre", o.centre, "subtract the means of inputs and targets");
  table.excludes("file", {"images", "labels", "class"});
  table.finish();
  o.place = table.place();

  table.needs("images", "labels");
  table.needs("labels", "images");
  table.require_that(table.given("images") || table.given("file"), "", "give images and labels, or file");
  return o;
}

SamplesOptions SamplesOptions::from(TableReader table) {
  SamplesOptions o;
  table.read("kind", o.kind, "structure matrices: A_n^2 = kappa_n A_n, or kappa_n (P+ - P-)",
             {{"definite", SampleKind::definite}, {"signed", SampleKind::signed_pair}});
  table.read("count", o.count, "number of samples N; needed where every array is a power law or one number",
             at_least(1));
  table.read_path("file", o.file, "HDF5 file with target, growth_rate, and initial or log_initial");
  table.read("target", o.target, "targets y_n [-]");
  table.read("growth_rate", o.growth_rate, "definite: 4 kappa_n y_n/N; signed: 4 kappa_n |y_n|/N [1/time]");
  table.finish();
  o.place = table.place();

  table.at_most_one({"file", "target"});
  table.at_most_one({"file", "growth_rate"});
  table.needs("target", "growth_rate");
  table.needs("growth_rate", "target");
  table.require_that(table.given("target") || table.given("file"), "", "give target and growth_rate, or file");
  return o;
}

SingleSampleOptions SingleSampleOptions::from(TableReader table) {
  SingleSampleOptions o;
  table.read("count", o.count, "number of modes K; needed where every array is a power law or one number", at_least(1));
  table.require("eigenvalues", o.eigenvalues, "eigenvalues a_k of the structure matrix [-]");
  table.require("target", o.target, "target y [-]");
  table.finish();
  o.place = table.place();
  return o;
}

InitialOptions InitialOptions::from(TableReader table) {
  InitialOptions o;
  table.read("value", o.value, "z_k(0); samples: f_n(0), signed: kappa z+(0) [-]", positive);
  table.read("log_value", o.log_value, "ln of the same, for values below 1e-308 [-]");
  table.read("epsilon", o.epsilon, "z_k(0) = epsilon * shape_k; \"1e-1000\" as a string below 1e-308 [-]");
  table.read("shape", o.shape, "shape_k beside epsilon; default 1 [-]", positive);
  table.read("relative_to_saturation", o.relative_to_saturation,
             "multiply the initial values by the saturations z*_k (samples: by y_n)");
  table.read("minus_ratio", o.minus_ratio, "signed samples: kappa z-(0) over kappa z+(0); default 1 [-]", non_negative);
  table.finish();
  o.place = table.place();

  table.at_most_one({"value", "log_value", "epsilon"});
  table.needs("shape", "epsilon");
  return o;
}

}  // namespace nqf::deck
