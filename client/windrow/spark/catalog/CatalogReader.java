package windrow;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.net.URI;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.catalog.BucketSpec;
import org.apache.spark.sql.catalyst.catalog.CatalogStorageFormat;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.CatalogTablePartition;
import org.apache.spark.sql.catalyst.catalog.ExternalCatalog;
import scala.Option;
import scala.Tuple2;

/** What Spark's catalog says of tables and their partitions, many in one answer, as JSON. */
public final class CatalogReader {
  private final ObjectMapper mapper = new ObjectMapper();

  public CatalogReader() {}

  /** Returns the tables of these names, one per line of the text; of each, or why it is unknown. */
  public String tables(ExternalCatalog catalog, String database, String names) throws Exception {
    List found = new ArrayList();
    String[] lines = names.split("\n");
    for (int at = 0; at < lines.length; at++) {
      Map table;
      try {
        table = described(catalog.getTable(database, lines[at]));
      } catch (Throwable error) {
        table = new LinkedHashMap();
        table.put("error", String.valueOf(error.getMessage()));
      }
      table.put("database", database);
      table.put("name", lines[at]);
      found.add(table);
    }
    return mapper.writeValueAsString(found);
  }

  /** Returns values, location, SerDe, input format and SerDe's properties of all partitions. */
  public String partitions(ExternalCatalog catalog, String database, String table, String columns)
      throws Exception {
    String[] names = columns.split("\n");
    List found = new ArrayList();
    scala.collection.Iterator partitions =
        catalog.listPartitions(database, table, Option.apply(null)).iterator();
    while (partitions.hasNext()) {
      CatalogTablePartition partition = (CatalogTablePartition) partitions.next();
      List values = new ArrayList();
      for (int at = 0; at < names.length; at++) {
        values.add(partition.spec().apply(names[at]));
      }
      List one = new ArrayList();
      CatalogStorageFormat storage = partition.storage();
      one.add(values);
      one.add(location(storage));
      one.add(orNull(storage.serde()));
      one.add(orNull(storage.inputFormat()));
      one.add(map(storage.properties()));
      found.add(one);
    }
    return mapper.writeValueAsString(found);
  }

  private Map described(CatalogTable table) {
    Map found = new LinkedHashMap();
    CatalogStorageFormat storage = table.storage();
    found.put("kind", table.tableType().name());
    found.put("provider", orNull(table.provider()));
    found.put("schema", table.schema().json());
    found.put("partition_columns", list(table.partitionColumnNames().iterator()));
    found.put("lists_partitions", Boolean.valueOf(table.tracksPartitionsInCatalog()));
    found.put("location", location(storage));
    found.put("serde", orNull(storage.serde()));
    found.put("input_format", orNull(storage.inputFormat()));
    found.put("options", map(storage.properties()));
    found.put("properties", map(table.properties()));
    if (table.bucketSpec().isDefined()) {
      BucketSpec buckets = (BucketSpec) table.bucketSpec().get();
      found.put("bucket_count", Integer.valueOf(buckets.numBuckets()));
      found.put("bucket_columns", list(buckets.bucketColumnNames().iterator()));
      found.put("sort_columns", list(buckets.sortColumnNames().iterator()));
    }
    return found;
  }

  private static String location(CatalogStorageFormat storage) {
    return storage.locationUri().isDefined()
        ? new Path((URI) storage.locationUri().get()).toString()
        : null;
  }

  private static Object orNull(Option option) {
    return option.isDefined() ? option.get() : null;
  }

  private static List list(scala.collection.Iterator items) {
    List found = new ArrayList();
    while (items.hasNext()) {
      found.add(items.next());
    }
    return found;
  }

  private static Map map(scala.collection.Map map) {
    Map found = new LinkedHashMap();
    scala.collection.Iterator items = map.iterator();
    while (items.hasNext()) {
      Tuple2 item = (Tuple2) items.next();
      found.put(item._1(), item._2());
    }
    return found;
  }
}
